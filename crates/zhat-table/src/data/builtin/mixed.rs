//! A table as tables are: a category, a yes or no, a whole number, a share and a number, each depending on those before it.

use rand::Rng;

use super::{Builtin, Entropy, log_normal, normal, normal_entropy, uniform};
use crate::data::kinds::{ColumnKind, Kind};

/// Regions, and how often each is.
const REGIONS: [&str; 4] = ["north", "east", "south", "west"];
const REGION: [f64; 4] = [0.4, 0.3, 0.2, 0.1];
/// How often a customer of a region is a member.
const MEMBER: [f64; 4] = [0.1, 0.3, 0.6, 0.9];
/// Visits are 0 to 12: so many coins, whose chance of heads depends on region and membership.
const COINS: usize = 12;

#[derive(Debug, Clone, Copy)]
pub(super) struct Mixed;

impl Mixed {
    fn heads(region: usize, member: usize) -> f64 {
        0.1 + 0.15 * region as f64 + 0.3 * member as f64
    }

    /// Mean and deviation of the log-odds of the share.
    fn share(member: usize, visits: usize) -> (f64, f64) {
        (0.3 * (visits as f64 - 5.0) - member as f64, 0.6)
    }

    /// Mean and deviation of the amount.
    fn amount(region: usize, share: f64) -> (f64, f64) {
        (50.0 + 10.0 * region as f64 + 40.0 * share, 2.0 + 4.0 * (region % 2) as f64)
    }
}

/// `log C(n, k) p^k (1 - p)^(n - k)`.
fn log_binomial(n: usize, k: usize, p: f64) -> f64 {
    let choose: f64 = (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum();
    choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()
}

impl Builtin for Mixed {
    fn name(&self) -> String {
        "mixed".into()
    }

    fn description(&self) -> String {
        "a category, yes or no, a whole number, a share between 0 and 1 and a number, dependent"
            .into()
    }

    fn dimension(&self) -> usize {
        5
    }

    fn kinds(&self) -> Vec<ColumnKind> {
        let words = |words: &[&str]| Kind::Categorical {
            levels: words.iter().chain(&["other"]).map(|word| (*word).to_owned()).collect(),
        };
        vec![
            ColumnKind::new("region", words(&REGIONS)),
            ColumnKind::new("member", words(&["no", "yes"])),
            ColumnKind::new(
                "visits",
                Kind::Integer { values: (0..=COINS).map(|k| k as f64).collect() },
            ),
            ColumnKind::new("share", Kind::Bounded { low: 0.0, high: 1.0 }),
            ColumnKind::new("amount", Kind::Continuous),
        ]
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(5 * rows);
        for _ in 0..rows {
            let (mut region, mut left) = (0, uniform(rng));
            while region + 1 < REGION.len() && left >= REGION[region] {
                left -= REGION[region];
                region += 1;
            }
            let member = usize::from(uniform(rng) < MEMBER[region]);
            let heads = Self::heads(region, member);
            let visits = (0..COINS).filter(|_| uniform(rng) < heads).count();
            let (mean, std_dev) = Self::share(member, visits);
            let share = 1.0 / (1.0 + (-(mean + std_dev * normal(rng))).exp());
            let (mean, std_dev) = Self::amount(region, share);
            let amount = mean + std_dev * normal(rng);
            values.extend([region as f64, member as f64, visits as f64, share, amount]);
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        let [region, member, visits] = [row[0], row[1], row[2]].map(|code| code as usize);
        let (share, amount) = (row[3], row[4]);
        if region >= REGION.len()
            || member > 1
            || visits > COINS
            || !(0.0..1.0).contains(&share)
            || share == 0.0
        {
            return f64::NEG_INFINITY;
        }
        let of_member = if member == 1 { MEMBER[region] } else { 1.0 - MEMBER[region] };
        let of_visits = log_binomial(COINS, visits, Self::heads(region, member));
        let (mean, std_dev) = Self::share(member, visits);
        let log_odds = (share / (1.0 - share)).ln();
        let of_share = log_normal(log_odds, mean, std_dev) - (share * (1.0 - share)).ln();
        let (mean, std_dev) = Self::amount(region, share);
        REGION[region].ln()
            + of_member.ln()
            + of_visits
            + of_share
            + log_normal(amount, mean, std_dev)
    }

    /// What is missing is summed over, where it is one of the first two.
    fn log_marginal(&self, row: &[f64], observed: &[bool]) -> Option<f64> {
        if observed[2..].contains(&false) {
            return (!observed.contains(&true)).then_some(0.0);
        }
        let values = |column: usize, number: usize| match observed[column] {
            true => vec![row[column]],
            false => (0..number).map(|code| code as f64).collect(),
        };
        let mut sum = 0.0;
        for region in values(0, REGION.len()) {
            for member in values(1, 2) {
                sum += self.log_density(&[region, member, row[2], row[3], row[4]]).exp();
            }
        }
        Some(sum.ln())
    }

    /// Sums over what is counted; the entropy of a share is that of its log-odds plus the mean of `log s (1 - s)`, by quadrature.
    fn entropy(&self) -> Entropy {
        let mut total = 0.0;
        for region in 0..REGION.len() {
            for member in 0..2 {
                let of_member = if member == 1 { MEMBER[region] } else { 1.0 - MEMBER[region] };
                let prior = REGION[region] * of_member;
                total -= prior * prior.ln();
                let (_, std_dev) = Self::amount(region, 0.5);
                total += prior * normal_entropy(std_dev);
                for visits in 0..=COINS {
                    let log_p = log_binomial(COINS, visits, Self::heads(region, member));
                    let p = prior * log_p.exp();
                    let (mean, std_dev) = Self::share(member, visits);
                    // Sixteen deviations in steps of a hundredth: the rule is exact to rounding for a smooth integrand.
                    let log_slope = (-800..=800).map(|step| {
                        let z = f64::from(step) * 0.01;
                        let odds = mean + std_dev * z;
                        let share = 1.0 / (1.0 + (-odds).exp());
                        0.01 * log_normal(z, 0.0, 1.0).exp() * (share * (1.0 - share)).ln()
                    });
                    total += p * (-log_p + normal_entropy(std_dev) + log_slope.sum::<f64>());
                }
            }
        }
        Entropy { value: total, error: 1e-6 }
    }
}
