//! The program `zhat`; all of it is in the library beside it, so that a Python package can have the same program.

use std::process::ExitCode;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(zhat_cli::run(std::env::args_os()))
}
