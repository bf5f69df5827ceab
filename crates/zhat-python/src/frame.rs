//! Columns of Python as a frame that the library reads, without a copy.

use numpy::PyReadonlyArray1;
use numpy::ndarray::ArrayView1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use zhat_table::data::{Frame, FrameCells, FrameColumn};

/// Columns that Python holds.
pub struct Columns<'py> {
    name: String,
    rows: usize,
    columns: Vec<(String, Held<'py>)>,
}

enum Held<'py> {
    Single(PyReadonlyArray1<'py, f32>),
    Double(PyReadonlyArray1<'py, f64>),
    Words(PyReadonlyArray1<'py, i64>, Vec<String>),
    Moments(PyReadonlyArray1<'py, i64>),
}

impl<'py> Columns<'py> {
    /// From tuples `(name, "number", array)`, `(name, "words", codes, words)` and `(name, "moments", seconds)`.
    pub fn new(name: &str, columns: &Bound<'py, PyList>) -> PyResult<Self> {
        let mut found = Vec::with_capacity(columns.len());
        for column in columns {
            let column = column.cast_into::<PyTuple>()?;
            let (name, kind): (String, String) =
                (column.get_item(0)?.extract()?, column.get_item(1)?.extract()?);
            let array = column.get_item(2)?;
            let held = match kind.as_str() {
                "number" => match array.extract() {
                    Ok(single) => Held::Single(single),
                    Err(_) => Held::Double(array.extract()?),
                },
                "words" => Held::Words(array.extract()?, column.get_item(3)?.extract()?),
                "moments" => Held::Moments(array.extract()?),
                other => return Err(PyTypeError::new_err(format!("a column of {other}"))),
            };
            if let Held::Words(codes, words) = &held
                && codes.as_array().iter().any(|&code| code >= words.len() as i64)
            {
                return Err(PyValueError::new_err(format!("column {name}: a code without a word")));
            }
            found.push((name, held));
        }
        let rows = found.first().map_or(0, |(_, held)| held.len());
        match found.iter().find(|(_, held)| held.len() != rows) {
            Some((name, held)) => Err(PyValueError::new_err(format!(
                "column {name} has {} rows, and others have {rows}",
                held.len()
            ))),
            None => Ok(Self { name: name.into(), rows, columns: found }),
        }
    }

    /// As the library reads it.
    pub fn frame(&self) -> Frame<'_> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (name, held) in &self.columns {
            columns.push(FrameColumn { name: name.clone(), cells: held.cells() });
        }
        Frame::new(&self.name, self.rows, columns)
    }
}

impl Held<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Single(array) => array.as_array().len(),
            Self::Double(array) => array.as_array().len(),
            Self::Words(array, _) | Self::Moments(array) => array.as_array().len(),
        }
    }

    fn cells(&self) -> FrameCells<'_> {
        match self {
            Self::Single(array) => {
                let array: ArrayView1<'_, f32> = array.as_array();
                FrameCells::Numbers(Box::new(move |row| f64::from(array[row])))
            }
            Self::Double(array) => {
                let array: ArrayView1<'_, f64> = array.as_array();
                FrameCells::Numbers(Box::new(move |row| array[row]))
            }
            Self::Words(array, words) => {
                let (array, words) = (array.as_array(), words.clone());
                FrameCells::Words { codes: Box::new(move |row| array[row]), words }
            }
            Self::Moments(array) => {
                let array = array.as_array();
                FrameCells::Moments(Box::new(move |row| array[row]))
            }
        }
    }
}
