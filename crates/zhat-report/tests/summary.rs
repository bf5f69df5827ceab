//! Quantiles against values worked out by hand, and what every list of log-spaced iterations has in common.

use zhat_report::{Quantiles, log_spaced_iterations, summarise};

fn four(quantiles: Quantiles) -> [f64; 4] {
    [quantiles.q25, quantiles.median, quantiles.q75, quantiles.worst]
}

#[test]
fn quantiles_interpolate_linearly_as_numpy_does() {
    // numpy.percentile([1, 2, 4, 8], [25, 50, 75]) = [1.75, 3.0, 5.0]
    let quantiles = Quantiles::of(vec![8.0, 1.0, 4.0, 2.0]).expect("four values");
    assert_eq!(four(quantiles), [1.75, 3.0, 5.0, 8.0]);
    let one = Quantiles::of(vec![-3.0]).expect("one value");
    assert_eq!(four(one), [-3.0; 4]);
}

#[test]
fn a_run_that_diverged_is_the_worst_and_leaves_the_median_alone() {
    let quantiles =
        Quantiles::of(vec![f64::NAN, 1.0, 2.0, 3.0, f64::INFINITY]).expect("five values");
    assert_eq!(four(quantiles), [2.0, 3.0, f64::INFINITY, f64::INFINITY]);
    let all = Quantiles::of(vec![f64::NAN; 4]).expect("four values");
    assert_eq!(all.median, f64::INFINITY);
}

#[test]
fn curves_take_the_values_of_each_iteration_counted_from_one() {
    let runs = [vec![10.0, 1.0, 7.0], vec![20.0, 3.0, 9.0]];
    let curves = summarise(&runs, &[1, 3]).expect("both exist");
    assert_eq!(curves.iterations, [1, 3]);
    assert_eq!(curves.median, [15.0, 8.0]);
    assert_eq!(curves.q25, [12.5, 7.5]);
    assert_eq!(curves.q75, [17.5, 8.5]);
    assert_eq!(curves.worst, [20.0, 9.0]);
}

#[test]
fn no_runs_and_missing_iterations_are_errors_that_say_what_to_do() {
    let message = summarise(&[], &[1]).expect_err("no runs").to_string();
    assert!(message.contains("let at least one run finish"), "{message}");
    let runs = [vec![1.0, 2.0], vec![1.0]];
    for (iteration, words) in [(2, "run 1 has iterations 1 to 1"), (0, "iteration 0")] {
        let message = summarise(&runs, &[iteration]).expect_err("not there").to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn there_are_about_twenty_iterations_per_decade_once_they_are_distinct() {
    let iterations = log_spaced_iterations(100_000);
    for decade in [100, 1_000, 10_000] {
        let count = iterations.iter().filter(|&&i| (decade..10 * decade).contains(&i)).count();
        assert_eq!(count, 20, "from {decade}");
    }
    assert!(log_spaced_iterations(0).is_empty());
}

#[test]
fn iterations_increase_from_one_to_the_last_through_one_hundred() {
    for last in (1..2000).chain((2000..2_000_000).step_by(7919)) {
        let iterations = log_spaced_iterations(last);
        assert!(iterations.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(iterations.first(), Some(&1));
        assert_eq!(iterations.last(), Some(&last));
        assert_eq!(iterations.contains(&100), last >= 100);
    }
}

#[test]
fn quantiles_are_ordered_and_do_not_depend_on_the_order_of_the_runs() {
    for length in 1..40 {
        // Scattered, with ties: multiples of a number modulo another.
        let mut values: Vec<f64> = (0..length).map(|i| f64::from(i * 7919 % 23) - 11.0).collect();
        let quantiles = Quantiles::of(values.clone()).expect("not empty");
        assert!(quantiles.q25 <= quantiles.median);
        assert!(quantiles.median <= quantiles.q75);
        assert!(quantiles.q75 <= quantiles.worst);
        values.reverse();
        assert_eq!(Quantiles::of(values).expect("not empty"), quantiles);
    }
}

#[test]
fn the_interval_of_a_median_has_the_ranks_of_the_sign_tests_tables() {
    // Two-sided 5 % critical values of the sign test are k - 1: 0 of 6, 1 of 10 and so on.
    for (number, rank) in [(6, 1), (10, 2), (20, 6), (50, 18), (100, 40), (1000, 469), (2000, 956)]
    {
        let values: Vec<f64> = (1..=number).map(f64::from).collect();
        let interval = Quantiles::of(values).expect("values").median_interval;
        assert_eq!(interval, (f64::from(rank), f64::from(number + 1 - rank)), "{number} values");
    }
    // The smallest and the largest of five miss the median once in 16 times.
    let everything = (f64::NEG_INFINITY, f64::INFINITY);
    let five = Quantiles::of(vec![1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
    assert_eq!(five.median_interval, everything);
}

#[test]
fn nineteen_of_twenty_intervals_hold_the_median_and_quartiles_do_not_shrink() {
    // Squares of uniform numbers around 0, as errors are; the median of the square is 1/16.
    let mut state = 1u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let mut missed = 0;
    let (mut widths, mut quartiles) = (0.0, 0.0);
    for _ in 0..2000 {
        let values = (0..100).map(|_| uniform().powi(2)).collect();
        let Quantiles { median_interval: (low, high), q25, q75, .. } =
            Quantiles::of(values).expect("values");
        missed += usize::from(!(low..=high).contains(&(1.0 / 16.0)));
        widths += high - low;
        quartiles += q75 - q25;
    }
    // Ranks 40 and 61 of 100 miss it with probability 3.52 %: 70.4 of 2000, with a standard deviation of 8.2; four of them.
    assert!((38..=103).contains(&missed), "{missed}");
    assert!(widths < 0.6 * quartiles, "an error of the median is not the spread of the values");
}
