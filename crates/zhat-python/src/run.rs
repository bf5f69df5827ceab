//! A run directory as an object of Python: fitted, resumed, and asked for all that a density is for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::json;
use zhat::device::DeviceName;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::watch::Watch;
use zhat_table::data::Frame;
use zhat_table::density::Estimation;
use zhat_table::fit::{self, Event, FitConfig, FitReport, Length, Limit, Session};
use zhat_table::fitted::{
    Fill, Fitted, ImputeOptions, SampleOptions, assess, distances, impute_rows, predictive, sample,
    sample_for, score_rows,
};
use zhat_table::{Result, TableError, prepare_frame, report};

use crate::configuration::Wanted;
use crate::errors::{of_table, of_zhat};
use crate::frame::Columns;
use crate::work::{self, Tell};

/// Steps are told no more often than this.
const TOLD_EVERY: Duration = Duration::from_millis(100);
/// Estimates of a Wasserstein distance.
const DISTANCES: usize = 10;

/// A run directory, and the density in it once it is opened.
#[pyclass(module = "zhat._zhat", frozen)]
pub struct Run {
    directory: PathBuf,
    workers: Workers,
    opened: Mutex<Option<Opened>>,
}

/// A density with what it is watched by: one that was stopped is opened anew.
#[derive(Clone)]
struct Opened {
    fitted: Arc<Fitted>,
    watch: Arc<Watch>,
}

/// Rows, and what each of them counts where that is not the same.
type Weighed<'py> = (Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray1<f64>>>);
type Scored<'py> =
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Option<Bound<'py, PyArray2<f64>>>);

#[pymethods]
impl Run {
    /// The run in a directory, be it new; 0 threads for as many as there are cores. Networks run on a device of `zhat devices`.
    #[new]
    #[pyo3(signature = (directory, threads, device = "cpu"))]
    fn new(directory: PathBuf, threads: usize, device: &str) -> PyResult<Self> {
        let open = || Workers::from(threads).on(device.parse::<DeviceName>()?.open()?);
        let workers = open().map_err(of_zhat)?;
        Ok(Self { directory, workers, opened: Mutex::default() })
    }

    /// Fits a density to columns in memory; gives how it ended as JSON. When it is interrupted, what was learnt is in the directory.
    fn fit(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyList>,
        name: &str,
        wanted: &str,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        self.trained(py, [name, wanted], columns, listener, |wanted, frame, watch, tell| {
            let planned = wanted.planned();
            let data =
                prepare_frame(&wanted.configuration(1, 1.into(), Length::Usual)?, frame, watch)?;
            let rows = data.rows[0] + data.rows[1];
            let columns = fit::Columns { all: data.columns.len(), given: data.given };
            let mut config = wanted.configuration(rows, columns, Length::Usual)?;
            told(tell, json!({"event": "kinds", "kinds": data.kinds}));
            for note in &data.notes {
                told(tell, json!({"event": "warning", "text": note}));
            }
            if let Some(limit) = &planned {
                limit.schedule(&mut config, &data, self.workers.clone(), watch, |work| {
                    let length = Length::Work(work);
                    wanted.configuration(rows, columns, length).map(|config| config.model)
                })?;
            }
            let session =
                Session::start(config, data, &self.directory, self.workers.clone(), watch)?;
            Ok((session, planned.or(wanted.hard())))
        })
    }

    /// Goes on with a fit of the same columns.
    fn resume(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyList>,
        name: &str,
        wanted: &str,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        self.trained(py, [name, wanted], columns, listener, |wanted, frame, watch, tell| {
            let stored = FitConfig::read_run(&self.directory)?;
            let config = wanted.on_top_of(stored.clone())?;
            let data = prepare_frame(&stored, frame, watch)?;
            let (out, workers) = (&self.directory, self.workers.clone());
            let (session, warnings) = Session::resume(config, data, out, workers, watch)?;
            for text in warnings {
                told(tell, json!({"event": "warning", "text": text}));
            }
            Ok((session, wanted.hard()))
        })
    }

    /// Log-densities of rows, their standard errors, and those of each column given the ones before it.
    ///
    /// Of an array of 32-bit floats whose columns are all numbers nothing is copied.
    fn score<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        name: &str,
        explain: bool,
    ) -> PyResult<Scored<'py>> {
        let scores = self
            .with_rows(py, rows, name, |opened, rows| score_rows(&opened.fitted, rows, explain))?;
        let columns = self.open(py)?.fitted.card().columns.len();
        let of_columns = match explain {
            true => {
                let rows = scores.log_density.len();
                Some(scores.of_columns.into_pyarray(py).reshape([rows, columns])?)
            }
            false => None,
        };
        let [log_density, errors] =
            [scores.log_density, scores.standard_error].map(|values| values.into_pyarray(py));
        Ok((log_density, errors, of_columns))
    }

    /// Draws, given some columns as texts, or for each of some rows given the cells that it has; and what they are worth, as JSON.
    #[pyo3(signature = (number, given, particles, seed, rows=None, name=""))]
    #[allow(clippy::too_many_arguments, reason = "what Python gives by name")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        given: Vec<(String, String)>,
        particles: Option<usize>,
        seed: u64,
        rows: Option<&Bound<'py, PyAny>>,
        name: &str,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, String)> {
        let opened = self.open(py)?;
        let options = |fitted: &Fitted| -> Result<SampleOptions> {
            let given = given.iter().map(|(name, text)| fitted.given(name, text));
            Ok(SampleOptions { number, given: given.collect::<Result<_>>()?, particles, seed })
        };
        let draws = match rows {
            Some(rows) => self.with_rows(py, rows, name, |opened, rows| {
                sample_for(opened.fitted.density(), rows, &options(&opened.fitted)?)
            })?,
            None => self.watched(py, &opened, || {
                sample(opened.fitted.density(), &options(&opened.fitted)?)
            })?,
        };
        let warnings: Vec<String> = draws.warnings.iter().cloned().chain(draws.warning()).collect();
        let told = json!({
            "effective_sample_size": draws.effective_sample_size,
            "particles": draws.particles,
            "effective_particles": draws.effective_particles,
            "warnings": warnings,
        });
        let shape = [draws.table.rows(), draws.table.dimension()];
        Ok((draws.table.into_values().into_pyarray(py).reshape(shape)?, told.to_string()))
    }

    /// Rows with their missing cells filled, and what stands beside them; the names of all these columns; and what was filled, as JSON.
    #[pyo3(signature = (rows, name, fill, copies, quantiles, particles, seed))]
    #[allow(clippy::too_many_arguments, reason = "what Python gives by name")]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        name: &str,
        fill: &str,
        copies: usize,
        quantiles: Vec<f64>,
        particles: usize,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<String>, String)> {
        let fill: Fill = fill.parse().map_err(crate::errors::of_zhat)?;
        let options = ImputeOptions { fill, copies, quantiles, particles, seed, text: false };
        let (lines, imputed) = self.with_rows(py, rows, name, |opened, rows| {
            impute_rows(&opened.fitted, rows, &options)
        })?;
        let names = options.columns(&self.open(py)?.fitted.card().columns);
        let (width, lines) = (names.len(), lines.into_pyarray(py));
        let number = lines.len()? / width;
        Ok((lines.reshape([number, width])?, names, as_json(&imputed)))
    }

    /// The likelihood of rows, each by its weight if there are any, whether it can be trusted, and of a model that is given columns what its
    /// predictions are worth, as JSON.
    #[pyo3(signature = (rows, weights, name, particles, estimates, cross_check, wasserstein, seed))]
    #[allow(clippy::too_many_arguments, reason = "what Python gives by name")]
    fn evaluate(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        weights: Option<Vec<f64>>,
        name: &str,
        particles: usize,
        estimates: usize,
        cross_check: bool,
        wasserstein: Option<usize>,
        seed: u64,
    ) -> PyResult<String> {
        let found = self.with_rows(py, rows, name, |opened, rows| {
            let (settings, density) =
                (Estimation::new(particles, estimates), opened.fitted.density());
            let mut found =
                assess(density, rows, weights.as_deref(), &settings, cross_check, seed)?;
            if let Some(number) = wasserstein {
                let streams = Streams::new(seed);
                found.wasserstein =
                    Some(distances(density, rows, None, number, DISTANCES, &streams)?);
            }
            if density.given() > 0 {
                found.predictive = Some(predictive(density, rows, weights.as_deref(), seed)?);
            }
            Ok(found)
        })?;
        Ok(as_json(&found))
    }

    /// Writes the page of the run, with pictures of the columns that it was fitted to where they are given.
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        columns: Option<&Bound<'_, PyList>>,
        name: &str,
    ) -> PyResult<()> {
        let columns = columns.map(|columns| Columns::new(name, columns)).transpose()?;
        let frame = columns.as_ref().map(Columns::frame);
        let watch = Arc::new(Watch::default());
        work::run(py, &watch, None, |_| {
            let mut fitted =
                Fitted::open(&self.directory, self.workers.clone(), Arc::clone(&watch))?;
            if let Some(frame) = &frame {
                let data = prepare_frame(&fitted.config()?, frame, &watch)?;
                fitted = fitted.with_data(data)?;
            }
            report::write_to(std::slice::from_ref(&fitted), &path)
        })
    }

    /// The test rows of the columns that it was fitted to, as numbers and codes, and their weights.
    fn test_rows<'py>(
        &self,
        py: Python<'py>,
        columns: &Bound<'py, PyList>,
        name: &str,
    ) -> PyResult<Weighed<'py>> {
        let columns = Columns::new(name, columns)?;
        let frame = columns.frame();
        let watch = Arc::new(Watch::default());
        let (rows, width) = work::run(py, &watch, None, |_| {
            let fitted = Fitted::open(&self.directory, self.workers.clone(), Arc::clone(&watch))?;
            let data = prepare_frame(&fitted.config()?, &frame, &watch)?;
            let width = fitted.card().columns.len();
            Ok((fitted.with_data(data)?.own_rows()?, width))
        })?;
        let (test, weights) = (rows.test, rows.weights.map(|weights| weights.into_pyarray(py)));
        let number = test.len() / width;
        Ok((test.into_pyarray(py).reshape([number, width])?, weights))
    }

    /// What the model is, as JSON.
    fn card(&self, py: Python<'_>) -> PyResult<String> {
        Ok(as_json(self.open(py)?.fitted.card()))
    }

    /// Words that the model does not know, in sentences, as they were met since it was opened.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.open(py)?.fitted.warnings())
    }

    /// `log Z` and its standard error.
    fn log_z(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let opened = self.open(py)?;
        self.watched(py, &opened, || opened.fitted.log_z())
    }

    /// Values of a column as texts, in the way of the table.
    fn texts(&self, py: Python<'_>, column: usize, values: Vec<f64>) -> PyResult<Vec<String>> {
        let opened = self.open(py)?;
        let kinds = opened.fitted.kinds();
        let kind = kinds.as_ref().and_then(|kinds| kinds.get(column));
        let kind = kind.ok_or_else(|| PyValueError::new_err("no such column, or no kinds"))?;
        Ok(values.into_iter().map(|value| kind.text(value)).collect())
    }
}

impl Run {
    /// Trains a session on columns of a name, with what is wanted of it; gives how it ended as JSON.
    fn trained(
        &self,
        py: Python<'_>,
        [name, wanted]: [&str; 2],
        columns: &Bound<'_, PyList>,
        listener: Option<Py<PyAny>>,
        start: impl FnOnce(&Wanted, &Frame<'_>, &Arc<Watch>, &Tell) -> Result<(Session, Option<Limit>)>
        + Send,
    ) -> PyResult<String> {
        let columns = Columns::new(name, columns)?;
        let (frame, wanted) = (columns.frame(), Wanted::parse(wanted).map_err(of_table)?);
        let watch = Arc::new(Watch::default());
        self.close();
        let report = work::run(py, &watch, listener.as_ref(), |tell| {
            let (session, limit) = start(&wanted, &frame, &watch, tell)?;
            self.go_on(session, limit.as_ref(), &watch, tell)
        })?;
        Ok(as_json(&report))
    }

    /// Trains to the end and evaluates; an error where it was stopped before.
    fn go_on(
        &self,
        mut session: Session,
        limit: Option<&Limit>,
        watch: &Arc<Watch>,
        tell: &Tell,
    ) -> Result<FitReport> {
        let mut last = Instant::now() - TOLD_EVERY;
        let done = session.run(limit, watch, &mut |event| {
            if matches!(event, Event::Step { .. }) && last.elapsed() < TOLD_EVERY {
                return;
            }
            last = Instant::now();
            told(tell, of_event(event));
        })?;
        done.ok_or(TableError::Zhat(zhat::Error::Stopped))
    }

    fn close(&self) {
        *self.opened.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    }

    /// The density, opened at its first use.
    fn open(&self, py: Python<'_>) -> PyResult<Opened> {
        let opened = self.opened.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        if let Some(opened) = opened.filter(|opened| !opened.watch.is_stopped()) {
            return Ok(opened);
        }
        let watch = Arc::new(Watch::default());
        let fitted = work::run(py, &watch, None, |_| {
            Fitted::open(&self.directory, self.workers.clone(), Arc::clone(&watch))
        })?;
        let opened = Opened { fitted: Arc::new(fitted), watch };
        *self.opened.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(opened.clone());
        Ok(opened)
    }

    /// Work with an opened density.
    fn watched<T: Send>(
        &self,
        py: Python<'_>,
        opened: &Opened,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        work::run(py, &opened.watch, None, |_| work())
    }

    /// Work on rows: an array of numbers as it is, or columns as the model reads them.
    fn with_rows<'py, T: Send>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        name: &str,
        work: impl FnOnce(&Opened, &[f32]) -> Result<T> + Send,
    ) -> PyResult<T> {
        let opened = self.open(py)?;
        if let Ok(array) = rows.extract::<PyReadonlyArray2<'py, f32>>() {
            let columns = opened.fitted.card().columns.len();
            if array.as_array().dim().1 != columns {
                return Err(PyValueError::new_err(format!(
                    "the array has {} columns, and the model {columns}",
                    array.as_array().dim().1
                )));
            }
            let rows = array.as_slice().map_err(|_| PyValueError::new_err("rows in order"))?;
            check_finite(rows, &opened.fitted.card().columns, name)?;
            return self.watched(py, &opened, || work(&opened, rows));
        }
        let columns = Columns::new(name, rows.cast::<PyList>()?)?;
        let frame: Frame<'_> = columns.frame();
        self.watched(py, &opened, || {
            let table = opened.fitted.rows_in(&frame)?;
            work(&opened, table.values())
        })
    }
}

/// An error for a cell that is infinite, by its place.
fn check_finite(rows: &[f32], columns: &[String], name: &str) -> PyResult<()> {
    match rows.iter().position(|value| value.is_infinite()) {
        Some(at) => Err(PyValueError::new_err(format!(
            "{name}, row index {}, column {} ({}): the cell is infinite. Remove the row.",
            at / columns.len(),
            at % columns.len() + 1,
            columns[at % columns.len()]
        ))),
        None => Ok(()),
    }
}

fn of_event(event: &Event) -> serde_json::Value {
    match event {
        Event::Step { step, steps, report } => {
            json!({"event": "step", "step": step, "steps": steps, "loss": report.loss})
        }
        Event::Validation { step, log_likelihood, best } => json!({
            "event": "validation", "step": step, "log_likelihood": log_likelihood, "best": best,
        }),
        Event::CrossValidation { step, steps, log_likelihood } => json!({
            "event": "cross-validation", "step": step, "steps": steps, "log_likelihood": log_likelihood,
        }),
        Event::Warning(text) => json!({"event": "warning", "text": text}),
        Event::Evaluating => json!({"event": "evaluating"}),
    }
}

/// Nobody may be listening any more.
fn told(tell: &Tell, event: serde_json::Value) {
    let _ = tell.send(event.to_string());
}

fn as_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}
