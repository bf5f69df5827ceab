//! Writing a file so that readers see the old one or the new one, and never a part.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::ReportError;

/// Creates `directory` if need be and makes sure that files can be written there, before any long work begins.
pub fn output_directory(directory: &Path) -> Result<(), ReportError> {
    let attempt = || {
        fs::create_dir_all(directory)?;
        PendingFile::create(&directory.join("probe")).map(drop)
    };
    attempt().map_err(|source| ReportError::Write { path: directory.into(), source })
}

/// Writes `contents` to `path`, whole or not at all.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), ReportError> {
    replace_file(path, |file| file.write_all(contents))
        .map_err(|source| ReportError::Write { path: path.into(), source })
}

/// Puts a new file in the place of `path`: written under a temporary name in the same directory, synced, and renamed.
///
/// A reader, or a program that is killed at any moment, finds the old file or the new one and nothing in between. Where
/// several write the same file at once, the last one stays. A failed write leaves no temporary file.
pub fn replace_file(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let (pending, file) = PendingFile::create(path)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    contents(&mut writer)?;
    writer.flush()?;
    pending.commit()
}

/// A file under a temporary name, for whoever writes it piece by piece. Unless it is committed, it is removed.
#[derive(Debug)]
pub struct PendingFile {
    path: PathBuf,
    temporary: PathBuf,
}

impl PendingFile {
    /// Creates the file in the directory of `path`.
    pub fn create(path: &Path) -> io::Result<(Self, File)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        loop {
            // A name that no other thread or process uses.
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".{name}.{}-{count}.tmp", std::process::id());
            let temporary = path.with_file_name(name);
            match File::create_new(&temporary) {
                // Of a program on another machine with the same number, or of one that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                created => return Ok((Self { path: path.into(), temporary }, created?)),
            }
        }
    }

    /// Makes sure that what was written is on the disk, and gives the file its name.
    pub fn commit(self) -> io::Result<()> {
        File::open(&self.temporary)?.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        // The new name is on the disk once its directory is. Some file systems cannot sync one, and then this is all there is.
        if let Some(parent) = self.path.parent() {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let _ = File::open(parent).and_then(|directory| directory.sync_all());
        }
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        // After a commit there is nothing of this name. Before one, the error worth reporting is the first one.
        let _ = fs::remove_file(&self.temporary);
    }
}
