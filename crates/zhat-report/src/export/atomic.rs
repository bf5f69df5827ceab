//! Writing a file so that readers see the old one or the new one, and never a part.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Mutex,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::ReportError;

/// Temporary files that are there now, for a program that is about to end in the middle of something.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Links that are followed from one to the next, as many as Linux does.
const MOST_LINKS: usize = 40;

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
/// several write the same file at once, the last one stays. A failed write leaves no temporary file. A symbolic link stays one,
/// and a device or a pipe is written to and never replaced (see [`PendingFile::create`]).
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
    /// None where the file itself is written to, because it cannot be replaced: a device or a pipe.
    temporary: Option<PathBuf>,
}

impl PendingFile {
    /// Creates the file in the directory of `path`.
    ///
    /// A symbolic link is followed, and the file that it leads to is the one that is replaced. What is no regular file, such as
    /// a device or a named pipe, is opened as it is: a rename would put a file in its place.
    pub fn create(path: &Path) -> io::Result<(Self, File)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let path = behind_links(path)?;
        if is_stream(&path) {
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok((Self { path, temporary: None }, file));
        }
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        loop {
            // A name that no other thread or process uses.
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".{name}.{}-{count}.tmp", std::process::id());
            let temporary = path.with_file_name(name);
            match File::create_new(&temporary) {
                // Of a program on another machine with the same number, or of one that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                created => {
                    let file = created?;
                    pending().push(temporary.clone());
                    return Ok((Self { path, temporary: Some(temporary) }, file));
                }
            }
        }
    }

    /// Whether what is written is seen at once and cannot be gone back to, as with a pipe.
    pub fn is_stream(&self) -> bool {
        self.temporary.is_none()
    }

    /// Makes sure that what was written is on the disk, and gives the file its name.
    pub fn commit(self) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        File::open(temporary)?.sync_all()?;
        fs::rename(temporary, &self.path)?;
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
        let Some(temporary) = &self.temporary else { return };
        // After a commit there is nothing of this name. Before one, the error worth reporting is the first one.
        let _ = fs::remove_file(temporary);
        pending().retain(|path| path != temporary);
    }
}

/// Whether there is something at `path` that is neither a file nor a directory: a device, a pipe or a socket.
pub fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Removes the temporary files of this program, for whoever ends it without going back through its callers.
pub fn remove_pending() {
    for path in pending().drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// Removes the temporary files that programs which were killed have left in a directory; those of programs that still run stay.
pub fn remove_leftovers(directory: &Path) {
    remove_where(directory, |_| true);
}

/// The same for those that were to become one file.
pub fn remove_leftovers_of(path: &Path) {
    let Ok(path) = behind_links(path) else { return };
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let start = format!(".{}.", name.to_string_lossy());
    remove_where(directory, |name| name.starts_with(&start));
}

fn remove_where(directory: &Path, is_meant: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if is_meant(&name) && writer_of(&name).is_some_and(|id| !is_running(id)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a process of this number runs, this one included. Where the system does not tell, every other one counts as ended.
pub fn is_running(id: u32) -> bool {
    id == std::process::id() || Path::new("/proc").join(id.to_string()).exists()
}

fn pending() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The process that made a temporary file, by the file's name: `.NAME.PROCESS-COUNT.tmp`.
fn writer_of(name: &str) -> Option<u32> {
    let (_, end) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    let (id, count) = end.split_once('-')?;
    count.parse::<u64>().ok()?;
    id.parse().ok()
}

/// Where a path leads to if it is a symbolic link, also where nothing is there yet.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // Such as /dev/stdout, whose last link is a name that says what is open and leads nowhere.
        if is_stream(&path) {
            return Ok(path);
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(target);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links, one after the other"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_known_by_their_names() {
        assert_eq!(writer_of(".results.json.123-4.tmp"), Some(123));
        assert_eq!(writer_of("..writable.9-0.tmp"), Some(9));
        for other in [".tmp", "a.1-2.tmp", ".a.tmp", ".a.x-1.tmp", ".a.1-2", ".a.1.tmp"] {
            assert_eq!(writer_of(other), None, "{other}");
        }
    }
}
