//! Errors of the library as exceptions of Python.

use std::any::Any;

use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use zhat_table::TableError;

/// What the user can mend is a `ValueError`, what the system refuses an `OSError`, what was stopped a `KeyboardInterrupt`.
pub fn of_table(error: TableError) -> PyErr {
    let message = error.to_string();
    match &error {
        _ if error.is_stop() => PyKeyboardInterrupt::new_err(message),
        TableError::Io { .. } => PyOSError::new_err(message),
        _ if error.is_input() => PyValueError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The same of the mathematics.
pub fn of_zhat(error: zhat::Error) -> PyErr {
    of_table(error.into())
}

/// A panic is a mistake of ours, and must not take the interpreter with it.
pub fn of_panic(payload: Box<dyn Any + Send>) -> PyErr {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    PyRuntimeError::new_err(format!("this is a mistake in zhat, please report it: {text}"))
}
