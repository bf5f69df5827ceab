//! Data through pipes, in and out, and standard output that is full or that nobody reads.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

const SETTINGS: [&str; 9] = [
    "training.batch-size=64",
    "step.num-negatives=5",
    "validation.particles=500",
    "evaluation.particles=1000",
    "evaluation.estimates=3",
    "model.energy.width=16",
    "model.proposal.width=16",
    "model.context=8",
    "model.mixture-components=4",
];

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pipes");
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        path
    })
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(arguments).arg("--quiet").current_dir(root());
    command
}

/// Runs it with bytes that come through a pipe, as `cat` would send them.
fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // Whoever wants no more closes the pipe.
    let sender = std::thread::spawn(move || pipe.write_all(&input).is_ok());
    let output = child.wait_with_output().expect("it ends");
    sender.join().expect("it ends");
    output
}

fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn failed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

fn fit<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let settings = SETTINGS.iter().flat_map(|setting| ["--set", *setting]);
    let small = ["--preset", "small", "--steps", "40"];
    arguments.iter().copied().chain(settings).chain(small).collect()
}

/// A model of two columns, fitted once for all tests.
fn run() -> &'static str {
    static RUN: OnceLock<()> = OnceLock::new();
    RUN.get_or_init(|| {
        let arguments = fit(&["fit", "builtin:banana", "--max-rows", "1500", "--out", "banana"]);
        done(command(&arguments).output().expect("it runs"));
    });
    "banana"
}

/// A table that is longer than what is looked at first, and than what fits into a pipe.
fn long_table() -> String {
    let row = |i: u64| {
        let [a, b] = [7919, 104_729].map(|prime| (i * prime % 10_007) as f64 / 2_500.0 - 2.0);
        format!("{a:.4},{b:.4}\n")
    };
    std::iter::once("x1,x2\n".to_owned()).chain((0..150_000).map(row)).collect()
}

fn fifo(name: &str) -> PathBuf {
    let path = root().join(name);
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    path
}

#[test]
fn a_table_is_scored_whole_whichever_way_it_comes() {
    let text = long_table();
    fs::write(root().join("long.csv"), &text).expect("written");
    let expected = done(command(&["score", run(), "long.csv"]).output().expect("it runs"));
    assert_eq!(expected.lines().count(), 150_001);
    for name in ["-", "/dev/stdin", "/dev/fd/0"] {
        let found = done(piped(&["score", run(), name], text.as_bytes()));
        assert!(found == expected, "{name}: {} lines", found.lines().count());
    }
    let pipe = fifo("long-pipe");
    let sender = std::thread::spawn(move || fs::write(pipe, text));
    let arguments = ["score", run(), "long-pipe", "--out", "-"];
    assert!(done(command(&arguments).output().expect("it runs")) == expected);
    sender.join().expect("it ends").expect("all was read");
}

#[test]
fn formats_that_are_read_back_and_forth_come_through_a_pipe_too() {
    for name in ["rows.parquet", "rows.npy"] {
        done(command(&["sample", run(), "-n", "300", "--out", name]).output().expect("it runs"));
        let expected = done(command(&["score", run(), name]).output().expect("it runs"));
        let bytes = fs::read(root().join(name)).expect("a file");
        assert_eq!(done(piped(&["score", run(), "-"], &bytes)), expected, "{name}");
        let cut = failed(&piped(&["score", run(), "-"], &bytes[..bytes.len() - 40]));
        assert!(cut.contains("standard input"), "{cut}");
    }
    // Column after column: 1, 2, 3 and 4, 5, 6.
    let header = "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([1.0, 2.0, 3.0, 4.0, 5.0, 6.0f64].iter().flat_map(|x| x.to_le_bytes()));
    let expected = done(piped(&["score", run(), "-"], b"1,4\n2,5\n3,6\n"));
    assert_eq!(done(piped(&["score", run(), "-"], &bytes)), expected);
}

#[test]
fn a_bad_line_of_a_pipe_is_found_at_its_place() {
    let text = "x1,x2\r\n1,2\r\n\r\n3,four\r\n";
    let output = piped(&["score", run(), "-"], text.as_bytes());
    let message = failed(&output);
    assert!(message.contains("standard input, line 4, column 2 (x2)"), "{message}");
    assert!(output.stdout.is_empty(), "no header without a row");
}

#[test]
fn a_fit_of_a_pipe_keeps_the_rows_for_whoever_needs_them_again() {
    let text: String = long_table().lines().take(1201).map(|line| format!("{line}\n")).collect();
    let arguments = fit(&["fit", "-", "--out", "of-pipe"]);
    done(piped(&arguments, text.as_bytes()));
    assert_eq!(fs::read_to_string(root().join("of-pipe/input")).expect("kept"), text);
    let page = fs::read_to_string(root().join("of-pipe/report.html")).expect("a page");
    assert!(!page.contains("could not be read again"));
    // Nothing comes through standard input any more.
    let evaluate = ["evaluate", "of-pipe", "--particles", "500", "--estimates", "2"];
    done(command(&evaluate).stdin(Stdio::null()).output().expect("it runs"));
    let resume = ["fit", "--resume", "--out", "of-pipe"];
    done(command(&resume).stdin(Stdio::null()).output().expect("it runs"));
}

#[test]
fn settings_come_through_a_pipe_and_are_all_used() {
    let settings = b"[training]\nbatch-size = 61\n";
    let table = ["fit", "builtin:banana", "--max-rows", "1500", "--steps", "20"];
    for (name, out) in [("-", "settings-1"), ("/dev/stdin", "settings-2")] {
        let arguments = [&table[..], &["--config", name, "--out", out]].concat();
        done(piped(&arguments, settings));
        let used = fs::read_to_string(root().join(out).join("config.toml")).expect("a file");
        assert!(used.contains("batch-size = 61"), "{used}");
    }
}

#[test]
fn pipes_are_written_to_and_never_replaced() {
    for ending in ["csv", "npy", "parquet"] {
        let (file, name) = (format!("drawn.{ending}"), format!("pipe.{ending}"));
        let sample = |out: &str| command(&["sample", run(), "-n", "50", "--out", out]).output();
        done(sample(&file).expect("it runs"));
        let pipe = fifo(&name);
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).expect("readable")
        });
        done(sample(&name).expect("it runs"));
        assert!(fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo());
        let expected = fs::read(root().join(&file)).expect("a file");
        assert!(reader.join().expect("it ends") == expected, "{ending}");
    }
    let pipe = fifo("page");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).expect("readable")
    });
    done(command(&["report", run(), "--out", "page"]).output().expect("it runs"));
    assert!(fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo());
    let page = reader.join().expect("it ends");
    let printed = done(command(&["report", run(), "--out", "-"]).output().expect("it runs"));
    assert!(page.starts_with("<!") && page == printed);
}

#[test]
fn a_reader_that_wants_no_more_is_no_error() {
    fs::write(root().join("unread.csv"), long_table()).expect("written");
    for arguments in [&["data", "list"] as &[&str], &["score", run(), "unread.csv"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
        command.args(arguments).current_dir(root());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
        reader.read_line(&mut first).expect("a line");
        drop(reader);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}");
        assert!(!text.contains("error") && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_and_no_panic() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let evaluate = ["evaluate", run(), "--particles", "500", "--estimates", "2"];
    for arguments in [
        &["data", "list"] as &[&str],
        &["--help"],
        &evaluate,
        &["sample", run(), "-n", "5"],
        &["report", run(), "--out", "-"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
        let output = command.args(arguments).current_dir(root()).stdout(full()).output();
        let text = failed(&output.expect("it runs"));
        assert!(text.contains("cannot write standard output"), "{arguments:?}: {text}");
        // With nobody to tell it to.
        let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
        command.args(arguments).current_dir(root()).stdout(full()).stderr(full());
        assert_eq!(command.status().expect("it runs").code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn identifiers_and_ranks_go_along_through_pipes() {
    let text = "x1,x2,id\n0,1,first\n0.5,-1,\"second, with a comma\"\n-1,2,third\n";
    fs::write(root().join("named.csv"), text).expect("written");
    let arguments = |from, to| ["score", run(), from, "--carry", "id", "--rank", "--out", to];
    let written = command(&arguments("named.csv", "named-scores.csv")).output().expect("it runs");
    done(written);
    let expected = fs::read_to_string(root().join("named-scores.csv")).expect("scores");
    assert!(expected.starts_with("id,log_density,rank\nfirst,"), "{expected}");
    for to in ["-", "/dev/stdout"] {
        assert_eq!(done(piped(&arguments("-", to), text.as_bytes())), expected, "{to}");
    }
    let out = fifo("named-pipe");
    let reader = std::thread::spawn(move || fs::read_to_string(out));
    done(piped(&arguments("-", "named-pipe"), text.as_bytes()));
    assert_eq!(reader.join().expect("it ends").expect("all was written"), expected);
}
