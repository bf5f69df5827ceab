//! The bytes of a file, from any place and as often as one likes; what can be read only once is kept as it comes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What stands for standard input where a file is named.
pub(crate) const STANDARD_INPUT: &str = "-";

/// A file, or what has come so far through a pipe, in a temporary file.
///
/// A pipe gives its bytes once, and a reader wants the first of them twice: to see what kind of table it is, and to read it. So
/// every byte that comes is kept, and those that are asked for again are taken from there.
#[derive(Debug, Clone)]
pub(super) struct Bytes(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    /// The file itself, or the temporary one.
    file: File,
    /// Bytes in the temporary file; none where it is the file itself.
    kept: u64,
    /// Where more bytes come from, until it ends; none where it is the file itself.
    source: Option<File>,
}

impl Bytes {
    /// Opens a file, a pipe, a device, or standard input.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let kept = match file.metadata()?.is_file() && path != Path::new(STANDARD_INPUT) {
            true => Kept { file, kept: 0, source: None },
            false => Kept { file: temporary_file()?, kept: 0, source: Some(file) },
        };
        Ok(Self(Arc::new(Mutex::new(kept))))
    }

    /// How many there are; none where more may come.
    pub(super) fn length(&self) -> io::Result<Option<u64>> {
        let kept = self.lock();
        let length = kept.file.metadata()?.len();
        Ok(kept.source.is_none().then_some(length))
    }

    /// The bytes from the first on, whoever else reads them.
    pub(super) fn reader(&self) -> Reader {
        Reader { bytes: self.clone(), at: 0 }
    }

    /// A file with all of them, for whoever goes back and forth; its place is that of nobody else for the moment.
    pub(super) fn whole(&self) -> io::Result<File> {
        let mut kept = self.lock();
        while kept.more(&mut vec![0; 1 << 16])? > 0 {}
        kept.file.try_clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Kept {
    /// More bytes from the source, which are kept; 0 at its end.
    fn more(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(source) = &mut self.source else { return Ok(0) };
        let number = loop {
            match source.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                read => break read?,
            }
        };
        if number == 0 {
            self.source = None;
            return Ok(0);
        }
        self.file.seek(SeekFrom::Start(self.kept))?;
        self.file.write_all(&buffer[..number]).map_err(|error| {
            let directory = std::env::temp_dir();
            let directory = directory.display();
            io::Error::new(
                error.kind(),
                format!("what comes through a pipe is kept in {directory}: {error}; set TMPDIR to a place with room, or give a file"),
            )
        })?;
        self.kept += number as u64;
        Ok(number)
    }
}

/// A place in the bytes, of its own.
#[derive(Debug)]
pub(super) struct Reader {
    bytes: Bytes,
    at: u64,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = self.bytes.lock();
        let number = match kept.source.is_some() && self.at >= kept.kept {
            true => kept.more(buffer)?,
            false => {
                kept.file.seek(SeekFrom::Start(self.at))?;
                kept.file.read(buffer)?
            }
        };
        self.at += number as u64;
        Ok(number)
    }
}

/// Whether what is at a path can be read once only: standard input, a pipe, a device.
pub(crate) fn is_read_once(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT) || zhat_report::export::is_stream(path)
}

/// Copies what can be read once only to a file, so that others can read it again.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = open(from)?;
    zhat_report::export::replace_file(to, |to| io::copy(&mut from, to).map(drop))
}

/// A path as messages name it.
pub(super) fn named(path: &Path) -> PathBuf {
    if path == Path::new(STANDARD_INPUT) { "standard input".into() } else { path.into() }
}

fn open(path: &Path) -> io::Result<File> {
    if path != Path::new(STANDARD_INPUT) {
        return File::open(path);
    }
    let standard_input = io::stdin();
    if io::IsTerminal::is_terminal(&standard_input) {
        let advice = "it is a terminal; send a table through a pipe, or name a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, advice));
    }
    duplicate(&standard_input)
}

#[cfg(unix)]
fn duplicate(standard_input: &io::Stdin) -> io::Result<File> {
    use std::os::fd::AsFd;
    standard_input.as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
fn duplicate(standard_input: &io::Stdin) -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    standard_input.as_handle().try_clone_to_owned().map(File::from)
}

/// A temporary file that nobody else can open and that is gone with the program, even if it is killed.
pub(crate) fn temporary_file() -> io::Result<File> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".zhat.{}-{count}.tmp", std::process::id());
        let path = std::env::temp_dir().join(name);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => {
                let place = format!("cannot keep what comes through a pipe in {}", path.display());
                return Err(io::Error::new(error.kind(), format!("{place}: {error}; set TMPDIR")));
            }
            Ok(file) => {
                // Where a file that is open keeps its name, it stays behind.
                let _ = fs::remove_file(&path);
                return Ok(file);
            }
        }
    }
}
