//! Verdicts on models that are known to be good or bad, and why.

mod known;
mod models;

use models::{Defect, zoo};
use zhat_table::density::Estimation;
use zhat_table::fitted::assess;

#[test]
fn bad_models_are_caught_and_good_ones_are_not() {
    let settings = Estimation::new(4_000, 8);
    let (mut missed, mut distrusted) = (Vec::new(), Vec::new());
    let animals = zoo(1);
    let good = animals.iter().filter(|animal| animal.defect == Defect::None).count();
    assert!(good >= 10 && animals.len() - good >= 20, "{good} of {}", animals.len());
    for animal in animals {
        let found = assess(&*animal.density, &animal.rows, &settings, true, 1).unwrap();
        let verdict = found.verdict;
        match animal.defect {
            Defect::None if !verdict.is_good() => {
                distrusted.push(format!("{}: {verdict}", animal.name));
            }
            Defect::None => {}
            // What has no Z is known by that, and not by accident.
            Defect::NoZ => assert!(verdict.reasons[0].contains("no Z"), "{verdict}"),
            _ if verdict.is_good() => missed.push(format!("{}: {verdict}", animal.name)),
            _ => {}
        }
    }
    assert!(distrusted.len() <= 1, "{distrusted:?}");
    assert!(missed.is_empty(), "{missed:?}");
}
