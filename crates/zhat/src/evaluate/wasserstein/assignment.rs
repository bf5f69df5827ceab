//! The assignment of rows to columns with the smallest sum of costs, by auction.
//!
//! Columns have prices. A row pays `cost + price`. A row without a column bids for the one where it would pay least, and
//! raises its price until it would pay `epsilon` more there than at its second choice; whoever had the column has to bid
//! again (Bertsekas, 1988). When every row has a column, no row pays more than `epsilon` above the least it could pay, and
//! by duality the sum of costs is within `n epsilon` of the smallest. Then `epsilon` is made smaller and the rows bid
//! again, with prices that are nearly right, until that is below rounding.
//!
//! A row looks at a shortlist of columns. Because prices only rise, a column that was not on the list when it was made
//! still costs at least what it cost then, so as long as the two best on the list are below this bound they are the two
//! best of all. Only otherwise is the row computed anew.

use rayon::prelude::*;

use super::costs::{Costs, Scan, WIDTH};
use crate::error::Result;
use crate::watch::Watch;

/// How close the sum of costs comes to the smallest, relatively.
const TOLERANCE: f64 = 1e-7;
/// `epsilon` at first, as a part of the mean cost, and by what it is divided after each phase. Both were found by trial;
/// the time hardly depends on them.
const FIRST_EPSILON: f64 = 1.0 / 16.0;
const DIVISOR: f64 = 4.0;
/// Columns on a shortlist: at least and at most.
const SHORTEST: usize = 32;
const LONGEST: usize = 64;
/// Bids between two looks at the watch: some milliseconds.
const WATCHED: usize = 64;

const NOBODY: u32 = u32::MAX;

/// A column for every row, and the prices that prove it to be the best one.
#[derive(Debug)]
pub(super) struct Assignment {
    pub column_of: Vec<usize>,
    pub prices: Vec<f64>,
}

/// Solves, unless the watch is stopped.
pub(super) fn solve(costs: &Costs, watch: &Watch) -> Result<Assignment> {
    let mut auction = Auction::new(costs);
    let (nearest, mean) = auction.make_lists();
    let mut epsilon = FIRST_EPSILON * mean;
    // The sum of costs is at least the sum of the nearest, which bounds the number of phases.
    let last = TOLERANCE * nearest.max(1e-12 * mean);
    let phases = ((epsilon / last).log(DIVISOR).ceil() + 1.0).max(1.0);
    watch.begin(phases as u64 * costs.number as u64);
    loop {
        auction.run(epsilon, watch)?;
        let total: f64 = auction.cost_of.iter().map(|&cost| f64::from(cost)).sum();
        if costs.number as f64 * epsilon <= TOLERANCE * total || total == 0.0 {
            break;
        }
        epsilon /= DIVISOR;
    }
    let column_of = auction.column_of.iter().map(|&column| column as usize).collect();
    Ok(Assignment { column_of, prices: auction.prices })
}

/// Who has which column, at which prices.
#[derive(Debug)]
struct Auction<'a> {
    costs: &'a Costs,
    prices: Vec<f64>,
    row_of: Vec<u32>,
    column_of: Vec<u32>,
    /// Cost of the column that a row has.
    cost_of: Vec<f32>,
    lists: Vec<Shortlist>,
    maker: Maker,
}

impl<'a> Auction<'a> {
    fn new(costs: &'a Costs) -> Self {
        let (number, prices) = (costs.number, costs.no_prices());
        Self {
            costs,
            row_of: vec![NOBODY; prices.len()],
            column_of: vec![NOBODY; number],
            cost_of: vec![0.0; number],
            lists: vec![Shortlist::default(); number],
            maker: Maker::default(),
            prices,
        }
    }

    /// Makes all lists; gives the means of a row's smallest cost and of all its costs.
    fn make_lists(&mut self) -> (f64, f64) {
        let (costs, prices) = (self.costs, &self.prices);
        let number = costs.number as f64;
        let means: Vec<(f64, f64)> = self
            .lists
            .par_iter_mut()
            .enumerate()
            .map_init(Maker::default, |maker, (row, list)| {
                maker.remake(costs, row, prices, list);
                let all = maker.scan.costs[..costs.number].iter().map(|&cost| f64::from(cost));
                (list.entries[0].paid, all.sum::<f64>() / number)
            })
            .collect();
        let sum = |(a, b), (c, d)| (a + c, b + d);
        let (nearest, mean) = means.into_iter().fold((0.0, 0.0), sum);
        (nearest / number, mean / number)
    }

    /// Rows bid until each has a column.
    fn run(&mut self, epsilon: f64, watch: &Watch) -> Result<()> {
        self.row_of.fill(NOBODY);
        self.column_of.fill(NOBODY);
        let number = self.costs.number;
        let (mut waiting, mut placed): (Vec<u32>, _) = ((0..number as u32).rev().collect(), 0);
        for bid in 0.. {
            if bid % WATCHED == 0 || waiting.is_empty() {
                watch.check()?;
                watch.advance(number - waiting.len() - placed);
                placed = number - waiting.len();
            }
            let Some(row) = waiting.pop() else { break };
            let (best, second) = self.two_best(row as usize);
            let price = &mut self.prices[best.column as usize];
            // A lone column has no second. The next number up, so that a price rises even where epsilon is lost in rounding.
            let rise = if second.is_finite() { second - best.paid } else { 0.0 } + epsilon;
            *price = (*price + rise).max(price.next_up());
            let before = std::mem::replace(&mut self.row_of[best.column as usize], row);
            if before != NOBODY {
                self.column_of[before as usize] = NOBODY;
                waiting.push(before);
            }
            self.column_of[row as usize] = best.column;
            self.cost_of[row as usize] = best.cost;
        }
        Ok(())
    }

    /// Where a row would pay least, and what it would pay at its second choice.
    fn two_best(&mut self, row: usize) -> (Entry, f64) {
        let list = &mut self.lists[row];
        list.two_best(&self.prices).unwrap_or_else(|| {
            self.maker.remake(self.costs, row, &self.prices, list);
            (list.entries[0], list.entries.get(1).map_or(list.beyond, |entry| entry.paid))
        })
    }
}

/// The columns where a row would have paid least when the list was made, in this order.
#[derive(Debug, Default, Clone)]
struct Shortlist {
    entries: Vec<Entry>,
    /// At any other column the row pays at least this.
    beyond: f64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    column: u32,
    cost: f32,
    /// What the row would have paid when the list was made: today it is no less.
    paid: f64,
}

impl Shortlist {
    /// The best entry with what is paid there now, and the second best payment, if no other column can be among the two.
    fn two_best(&self, prices: &[f64]) -> Option<(Entry, f64)> {
        let mut best: Option<Entry> = None;
        let (mut first, mut second) = (f64::INFINITY, f64::INFINITY);
        for entry in &self.entries {
            if entry.paid >= second {
                break;
            }
            let paid = f64::from(entry.cost) + prices[entry.column as usize];
            if paid < first {
                (second, first, best) = (first, paid, Some(Entry { paid, ..*entry }));
            } else if paid < second {
                second = paid;
            }
        }
        best.filter(|_| second <= self.beyond).map(|best| (best, second))
    }
}

/// Memory to make shortlists.
#[derive(Debug, Default)]
struct Maker {
    scan: Scan,
    minima: Vec<f64>,
    found: Vec<Entry>,
}

impl Maker {
    /// Makes the list of a row anew.
    fn remake(&mut self, costs: &Costs, row: usize, prices: &[f64], list: &mut Shortlist) {
        costs.scan(row, prices, &mut self.scan);
        // As many panels have a column at or below this limit, and so there are at least as many such columns.
        self.minima.clone_from(&self.scan.minima);
        let limit = match self.minima.len() > SHORTEST {
            true => *self.minima.select_nth_unstable_by(SHORTEST - 1, f64::total_cmp).1,
            false => f64::MAX,
        };
        self.found.clear();
        let panels = self.scan.minima.iter().enumerate();
        for (panel, _) in panels.filter(|(_, minimum)| **minimum <= limit) {
            let columns = panel * WIDTH..(panel + 1) * WIDTH;
            let payments = self.scan.costs[columns.clone()].iter().zip(&prices[columns.clone()]);
            for (column, (&cost, price)) in columns.zip(payments) {
                let paid = f64::from(cost) + price;
                if paid <= limit {
                    self.found.push(Entry { column: column as u32, cost, paid });
                }
            }
        }
        let order = |a: &Entry, b: &Entry| a.paid.total_cmp(&b.paid).then(a.column.cmp(&b.column));
        list.beyond = if limit == f64::MAX { f64::INFINITY } else { limit };
        if self.found.len() > LONGEST {
            list.beyond = self.found.select_nth_unstable_by(LONGEST, order).1.paid;
            self.found.truncate(LONGEST);
        }
        self.found.sort_unstable_by(order);
        list.entries.clone_from(&self.found);
    }
}
