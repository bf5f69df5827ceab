//! Exit codes: 0 done, 1 failed, 2 bad usage or input.

/// How a command that ran to its end went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be.
    Done,
    /// It ran, but what it checked does not hold, or it was stopped before its end.
    Failed,
}

impl Outcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Failed => 1,
        }
    }
}

/// One line on stderr, and the code that goes with the error: 2 where the user can mend it, else 1.
pub fn report(error: &anyhow::Error) -> u8 {
    let data = match error.downcast_ref() {
        Some(zhat_table::TableError::Data(error)) => Some(error),
        _ => error.downcast_ref::<zhat_table::data::Error>(),
    };
    if data.is_some_and(crate::output::is_unread) {
        return 0;
    }
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors name their cause themselves.
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    eprintln!("error: {}{}", with_flags(&message), hint(error));
    let setting = matches!(error.downcast_ref(), Some(zhat::Error::InvalidSetting { .. }));
    let path = matches!(error.downcast_ref(), Some(zhat_report::ReportError::Write { .. }));
    let table = error
        .downcast_ref::<zhat_table::TableError>()
        .is_some_and(zhat_table::TableError::is_input);
    let data = error.is::<zhat_table::data::Error>();
    if setting || path || table || data { 2 } else { 1 }
}

/// Prints help, the version or what is wrong with the arguments.
pub fn usage(usage: &clap::Error) -> u8 {
    match usage.print() {
        Err(source) if !usage.use_stderr() => report(&crate::output::unwritable(source).into()),
        _ => code_of(usage),
    }
}

/// The exit code of what is wrong with the arguments.
pub fn code_of(usage: &clap::Error) -> u8 {
    u8::try_from(usage.exit_code()).unwrap_or(2)
}

/// Whether an error says no more than that the work was told to stop.
pub fn is_stop(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(zhat_table::TableError::is_stop)
        || matches!(error.downcast_ref(), Some(zhat::Error::Stopped))
}

/// Libraries name settings, as `columns`; on the command line that is `--columns`.
pub fn with_flags(message: &str) -> String {
    let flags = [
        "columns",
        "kind",
        "delimiter",
        "header",
        "format",
        "dequantise",
        "max-rows",
        "carry",
        "max-line-bytes",
        "max-columns",
        "out",
        "any-size",
        "allow-modified",
        "time",
    ];
    flags.iter().fold(message.replace("`missing` drop", "--drop-missing"), |message, flag| {
        message.replace(&format!("`{flag}`"), &format!("--{flag}"))
    })
}

/// What to type for a setting that an error is about.
fn hint(error: &anyhow::Error) -> String {
    use zhat_table::TableError::{NotARun, RunExists, Unfinished, Zhat};
    let table = error.downcast_ref::<zhat_table::TableError>();
    match table {
        Some(RunExists { .. }) => return " (--out for another, --resume to go on)".into(),
        Some(NotARun { .. }) => return " (the --out of `zhat fit`)".into(),
        Some(Unfinished { path, .. }) => {
            return format!(" (`zhat fit --resume --out {}`)", path.display());
        }
        _ => (),
    }
    let core = match table {
        Some(Zhat(core)) => Some(core),
        _ => error.downcast_ref(),
    };
    let Some(zhat::Error::InvalidSetting { name, .. }) = core else { return String::new() };
    let flag = match *name {
        "number of rows" => "-n",
        "rows of a distance" => "--wasserstein",
        "num_particles" => "--particles",
        "particles" | "estimates" | "given" | "quantiles" | "copies" | "criteria" | "repeats"
        | "steps" | "time" | "threads" | "device" => return format!(" (--{name})"),
        _ => return String::new(),
    };
    format!(" ({flag})")
}
