//! The guide in `docs/`: every command that it shows after a `$` is run, and ends as the guide says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pages with commands; each is gone through from its top in a directory of its own.
const PAGES: [&str; 3] = ["first-table.md", "reading-the-report.md", "what-can-go-wrong.md"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A command, and the lines that the guide shows below it.
struct Shown {
    command: String,
    output: Vec<String>,
}

/// The commands of a page: indented lines that begin with `$`, and what is indented below them.
fn commands(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        let Some(code) = line.strip_prefix("    ") else {
            open &= line.is_empty();
            continue;
        };
        if let Some(command) = code.strip_prefix("$ ") {
            found.push(Shown { command: command.into(), output: Vec::new() });
            open = true;
        } else if let Some(shown) = found.last_mut().filter(|_| open) {
            shown.output.push(code.into());
        }
    }
    found
}

/// What is compared: numbers of a fit differ from machine to machine in their last digits, and messages do not.
const MESSAGES: [&str; 4] = ["error:", "warning:", "This likelihood", "8 of 8 columns"];

#[test]
fn every_command_of_the_guide_runs_and_ends_as_the_guide_says() {
    let program = Path::new(env!("CARGO_BIN_EXE_zhat")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    for page in PAGES {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide").join(page);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a directory");
        fs::copy(docs().join("penguins.csv"), directory.join("penguins.csv")).expect("a table");
        let text = fs::read_to_string(docs().join(page)).expect("a page");
        let commands = commands(&text);
        assert!(!commands.is_empty(), "{page} has no commands");
        for Shown { command, output } in commands {
            let ran = Command::new("sh")
                .args(["-c", &command])
                .current_dir(&directory)
                .env("PATH", &path)
                .output()
                .expect("a shell");
            let printed = format!(
                "{}{}",
                String::from_utf8_lossy(&ran.stderr),
                String::from_utf8_lossy(&ran.stdout)
            );
            let fails = output.iter().any(|line| line.starts_with("error:"));
            let strict = command.contains("--strict");
            assert_eq!(ran.status.success(), !(fails || strict), "{page}: {command}\n{printed}");
            let messages =
                output.iter().filter(|line| MESSAGES.iter().any(|start| line.starts_with(start)));
            for line in messages {
                assert!(printed.contains(line), "{page}: {command}\nno {line:?} in\n{printed}");
            }
        }
    }
}

#[test]
fn every_link_of_the_guide_leads_somewhere() {
    let mut pages: Vec<PathBuf> = fs::read_dir(docs())
        .expect("docs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    assert!(pages.len() > PAGES.len());
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains("://") {
                assert!(docs().join(file).exists(), "{}: {target} is not there", page.display());
            }
        }
    }
}
