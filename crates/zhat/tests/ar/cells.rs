//! Cells given those before them: against sums over a grid, against scores of rows, and for rows of the model itself.

use zhat::ar::*;
use zhat::smc::SmcConfig;

use crate::local::{HEADS, factor, local};
use crate::small_model::random;

/// The largest distance between the shares of numbers below every value and those of a uniform distribution.
fn distance_from_uniform(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    let number = sorted.len() as f64;
    let apart = |(rank, &u): (usize, &f64)| {
        let [before, after] = [rank as f64, rank as f64 + 1.0].map(|count| count / number);
        (u - before).max(after - u)
    };
    sorted.iter().enumerate().map(apart).fold(0.0, f64::max)
}

#[test]
fn the_cells_of_a_row_sum_to_its_score() {
    for head in HEADS {
        let (model, streams) = random(&local(head));
        for evaluator in [Evaluator::new(&model, 2), Evaluator::of_proposal(&model, 2)] {
            let evaluator = evaluator.unwrap();
            let x = evaluator.sample_proposal(600, &streams);
            let (cells, scores) = (evaluator.cells(&x).unwrap(), evaluator.score(&x).log_p_tilde);
            for (cells, score) in cells.log_p.chunks_exact(2).zip(scores) {
                assert!((cells[0] + cells[1] - score).abs() < 1e-12, "{cells:?} {score}");
            }
        }
    }
}

#[test]
fn the_share_below_a_cell_is_that_of_a_sum_over_a_grid() {
    let step = 0.002;
    let at = |i: i32| step * (i as f32 + 0.5);
    for head in HEADS {
        let (model, streams) = random(&local(head));
        let evaluator = Evaluator::new(&model, 2).unwrap();
        let mut global = model.clone();
        global.shape.normalisation = Normalisation::Global;
        let x = evaluator.sample_proposal(30, &streams);
        let below = evaluator.cells(&x).unwrap().below;
        for (x, below) in x.chunks_exact(2).zip(below.chunks_exact(2)) {
            for stage in 0..2 {
                let row = |i: i32| if stage == 0 { [at(i), 0.0] } else { [x[0], at(i)] };
                let mass = factor(&global, stage, (-7000..7000).flat_map(row).collect());
                let sum = |cells: &[f64]| cells.iter().map(|log_p| log_p.exp()).sum::<f64>();
                // The cell of the grid that holds the value is in part below it.
                let cut = x[stage] / step + 7000.0;
                let in_cell = mass[cut as usize].exp() / sum(&mass);
                let part = f64::from(cut.fract()) * in_cell;
                let expected = sum(&mass[..cut as usize]) / sum(&mass) + part;
                // A kink of the energy within a piece, and where the density is steep what it does within the cell.
                let (found, most) = (below[stage], 1e-3 + 0.25 * in_cell);
                assert!((found - expected).abs() < most, "{head:?} {x:?}: {found} {expected}");
            }
        }
    }
}

#[test]
fn rows_of_the_model_have_uniform_and_independent_shares_and_those_of_its_base_have_not() {
    let number = 20_000;
    for head in HEADS {
        let (model, streams) = random(&local(head));
        let evaluator = Evaluator::new(&model, 2).unwrap();
        let run = evaluator.smc(&SmcConfig::new(number).unwrap(), &streams, 0).unwrap();
        let rows: Vec<f32> =
            (0..number).flat_map(|row| [run.columns[0][row], run.columns[1][row]]).collect();
        let below = evaluator.cells(&rows).unwrap().below;
        let of_column = |cells: &[f64], column: usize| {
            distance_from_uniform(cells.iter().skip(column).step_by(2).copied())
        };
        // 1.95 / sqrt(n): level 0.001 for each of six.
        let most = 1.95 / (number as f64).sqrt();
        for column in 0..2 {
            let distance = of_column(&below, column);
            assert!(distance < most, "{head:?} {column}: {distance}");
        }
        // Products of centred uniform numbers have mean 0 and standard deviation 1 / 12; 3.3 of its errors are level 0.001.
        let products = below.chunks_exact(2).map(|u| (u[0] - 0.5) * (u[1] - 0.5));
        let mean = products.sum::<f64>() / number as f64;
        assert!(mean.abs() < 3.3 / 12.0 / (number as f64).sqrt(), "{head:?}: {mean}");
        let base = evaluator.cells(&evaluator.sample_proposal(number, &streams)).unwrap().below;
        let furthest = of_column(&base, 0).max(of_column(&base, 1));
        assert!(furthest > 2.0 * most, "{head:?}: {furthest}");
        // Its own density has.
        let proposal = Evaluator::of_proposal(&model, 2).unwrap();
        let own = proposal.cells(&proposal.sample_proposal(number, &streams)).unwrap().below;
        let furthest = of_column(&own, 0).max(of_column(&own, 1));
        assert!(furthest < most, "{head:?}: {furthest}");
    }
}

#[test]
fn a_model_with_one_normaliser_for_all_says_nothing_of_a_cell_alone() {
    let global = ArEbmConfig { normalisation: Normalisation::Global, ..local(HeadForm::Mixture) };
    let (model, streams) = random(&global);
    let evaluator = Evaluator::new(&model, 1).unwrap();
    assert_eq!(evaluator.cells(&evaluator.sample_proposal(3, &streams)), None);
}
