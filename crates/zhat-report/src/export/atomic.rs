//! Writing a file so that readers see the old one or the new one, and never a part.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::ReportError;

/// Creates `directory` if need be and makes sure that files can be written there, before any long work begins.
pub fn output_directory(directory: &Path) -> Result<(), ReportError> {
    let attempt = || {
        fs::create_dir_all(directory)?;
        let probe = temporary_name(&directory.join("probe"));
        File::create_new(&probe)?;
        fs::remove_file(&probe)
    };
    attempt().map_err(|source| ReportError::Write { path: directory.into(), source })
}

/// Writes `contents` under a temporary name in the same directory, syncs, and renames it to `path`.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), ReportError> {
    let temporary = temporary_name(path);
    let attempt = || -> io::Result<()> {
        let mut file = File::create_new(&temporary)?;
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    attempt().map_err(|source| {
        // Best effort: the error worth reporting is the first one.
        let _ = fs::remove_file(&temporary);
        ReportError::Write { path: path.into(), source }
    })
}

/// A name beside `path` that no other thread or process uses.
fn temporary_name(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy());
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}-{count}.tmp", std::process::id()))
}
