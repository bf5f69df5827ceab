//! The lock of a run: one process at a time writes into its directory, and says who it is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use zhat_report::export::is_running;

use crate::error::{Result, TableError};

/// A lock that is held until it goes out of scope.
///
/// The system gives it back when the process ends, in whichever way: the file of a process that was killed stays behind and locks
/// nothing. It is never removed, because another process may be waiting for it.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Locks a directory, which must be there, or says which process has it.
    pub fn take(directory: &Path) -> Result<Self> {
        let path = file(directory);
        let io = |source| TableError::io(&path, source);
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).truncate(false).read(true).write(true).open(&path).map_err(io)?;
        let before = holder(&mut file);
        let refused = match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            // A file system without locks: what is left is to ask whether whoever wrote its number there still runs.
            Err(TryLockError::Error(_)) => {
                before.as_ref().is_some_and(|(_, id)| *id != std::process::id() && is_running(*id))
            }
        };
        if refused {
            return Err(TableError::Locked { path: directory.into(), holder: named(before) });
        }
        let own = format!("{} {}\n", program(), std::process::id());
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        file.write_all(own.as_bytes()).map_err(io)?;
        Ok(Self { _file: file })
    }

    /// An error if another process has the directory, for whoever is about to begin something long and will lock it after that.
    pub fn check(directory: &Path) -> Result<()> {
        match fs::exists(file(directory)) {
            Ok(true) => Self::take(directory).map(drop),
            _ => Ok(()),
        }
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join(".lock")
}

/// Name and number of the process that wrote the file last.
fn holder(file: &mut File) -> Option<(String, u32)> {
    let mut text = String::new();
    file.take(1000).read_to_string(&mut text).ok()?;
    let (name, id) = text.trim_end().rsplit_once(' ')?;
    Some((name.to_owned(), id.parse().ok()?))
}

fn named(holder: Option<(String, u32)>) -> String {
    match holder {
        Some((name, id)) => format!("{name}, process {id}"),
        None => "another process".into(),
    }
}

/// What this program is called.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    path.file_name().map_or_else(|| "zhat".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_writer_who_is_named_and_a_dead_one_has_it_no_longer() {
        let directory = std::env::temp_dir().join(format!("zhat-lock-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        RunLock::check(&directory).unwrap();
        // What a process leaves that was killed. No process has this number.
        fs::write(file(&directory), "zhat 4294967295\n").unwrap();
        let lock = RunLock::take(&directory).unwrap();
        let message = RunLock::take(&directory).unwrap_err().to_string();
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        assert!(RunLock::check(&directory).is_err());
        drop(lock);
        RunLock::check(&directory).unwrap();
        drop(RunLock::take(&directory).unwrap());
        fs::remove_dir_all(&directory).unwrap();
    }
}
