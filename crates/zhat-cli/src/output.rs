//! Standard output and standard error of the whole program: a reader that has gone away ends nothing, a full disk is an error.
//!
//! The root of the crate puts macros of the usual names in the place of those of the standard library, which panic where a line cannot be
//! written. The first failure is kept, and looked at when the work is done.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use zhat_table::data;

/// What standard output is called in messages.
const NAME: &str = "standard output";

static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to standard output, unless that has failed before. Of several ranks the first alone does.
pub fn print(text: Arguments) {
    if !crate::ranks::speaks() {
        return;
    }
    let mut failed = FAILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if failed.is_none() {
        *failed = io::stdout().write_fmt(text).err();
    }
}

/// Writes to standard error. Where that fails there is nobody to tell.
pub fn tell(text: Arguments) {
    if crate::ranks::speaks() {
        let _ = io::stderr().write_fmt(text);
    }
}

/// Whether everything could be written.
pub fn finish() -> Result<(), data::Error> {
    let mut failed = FAILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let error = failed.take().or_else(|| io::stdout().flush().err());
    error.map_or(Ok(()), |source| Err(unwritable(source)))
}

/// The error for what could not be written there.
pub fn unwritable(source: io::Error) -> data::Error {
    data::Error::Unwritable { file: NAME.into(), source }
}

/// Whether an error says that whoever read standard output wants no more: `head` does that, and nothing is wrong.
pub fn is_unread(error: &data::Error) -> bool {
    match error {
        data::Error::Unwritable { file, source } => {
            file == Path::new(NAME) && source.kind() == io::ErrorKind::BrokenPipe
        }
        _ => false,
    }
}

/// Whether a path is another name of standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}
