//! Long work on a thread of its own, while Python's main thread looks for signals and tells what happens.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

use pyo3::prelude::*;
use zhat::watch::Watch;
use zhat_table::Result;

use crate::errors::{of_panic, of_table};

/// How often signals are looked for.
const SLICE: Duration = Duration::from_millis(100);
/// As much as the main thread of a program has.
const STACK: usize = 8 << 20;

/// Where the work sends what Python should know, as JSON.
pub type Tell = Sender<String>;

/// Does the work without holding the interpreter. A signal, or an exception of the listener, stops the watch, and is raised when the
/// work has come to its end.
pub fn run<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    listener: Option<&Py<PyAny>>,
    work: impl FnOnce(&Tell) -> Result<T> + Send,
) -> PyResult<T> {
    let (done, raised) = py.detach(|| {
        let (send, receive) = channel::<String>();
        scope(|scope| {
            let working = Builder::new().name("zhat".into()).stack_size(STACK);
            let worker = working.spawn_scoped(scope, move || work(&send));
            let mut raised = None;
            loop {
                let told = match receive.recv_timeout(SLICE) {
                    Ok(first) => std::iter::once(first).chain(receive.try_iter()).collect(),
                    Err(RecvTimeoutError::Timeout) => Vec::new(),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if raised.is_none() {
                    raised = Python::attach(|py| tell(py, listener, told)).err();
                }
                if raised.is_some() {
                    watch.stop();
                }
            }
            (worker.map(|worker| worker.join()), raised)
        })
    });
    let done = done?.map_err(of_panic)?;
    match raised {
        Some(raised) => Err(raised),
        None => done.map_err(of_table),
    }
}

fn tell(py: Python<'_>, listener: Option<&Py<PyAny>>, told: Vec<String>) -> PyResult<()> {
    if let Some(listener) = listener {
        for text in told {
            listener.call1(py, (text,))?;
        }
    }
    py.check_signals()
}
