//! `zhat theory` as a user calls it.

use std::process::Command;

#[test]
fn every_claim_of_the_paper_holds_for_two_seeds() {
    for seed in ["0", "1"] {
        let output = Command::new(env!("CARGO_BIN_EXE_zhat"))
            .args(["theory", "--json", "--quiet", "--seed", seed])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = document["checks"].as_array().unwrap();
        assert!(checks.len() >= 30);
        let chance = document["chance_of_false_alarm"].as_f64().unwrap();
        assert!((1e-6..=1e-4).contains(&chance), "{chance:e}");
        for check in checks {
            for key in ["id", "claim", "twin", "computed", "expected", "z_or_diff", "pass"] {
                assert!(!check[key].is_null(), "{key} of {check}");
            }
            assert_eq!(check["pass"], true, "{check}");
        }
    }
}

#[test]
fn bad_usage_exits_with_2() {
    for arguments in [vec!["theory", "--seed", "x"], vec!["nonsense"], vec![]] {
        let output = Command::new(env!("CARGO_BIN_EXE_zhat")).args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
