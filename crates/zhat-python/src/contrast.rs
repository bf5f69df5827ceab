//! Weights of every contrast, and estimates of `log Z`, on arrays: what a model of one's own in PyTorch or JAX needs.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zhat::criterion::Method;
use zhat::evaluate::LogZ;
use zhat::rng::Streams;
use zhat::smc::Resampling;
use zhat::weights::LogWeights;

/// Names of the methods that [`weights`] knows.
#[pyfunction]
pub fn methods() -> Vec<&'static str> {
    let two = LogWeights::from_values(vec![0.0; 2], 2);
    let weighs = |method: &Method| method.weigh(&two).is_some();
    Method::for_any_model().filter(weighs).map(Method::name).collect()
}

/// The weights of the candidates of each row; the first candidate is where the chain is, most often the data point.
///
/// # Shapes
/// - `log_p`, `log_q`: `[n, c]`
#[pyfunction]
pub fn weights<'py>(
    py: Python<'py>,
    method: &str,
    log_p: PyReadonlyArray2<'py, f64>,
    log_q: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let method: Method =
        method.parse().map_err(|error: zhat::Error| crate::errors::of_zhat(error))?;
    let (log_p, log_q) = (log_p.as_array(), log_q.as_array());
    let (rows, columns) = log_p.dim();
    if log_q.dim() != (rows, columns) || columns < 2 {
        return Err(PyValueError::new_err(format!(
            "log_p is {:?} and log_q is {:?}, but both are [rows, candidates], with at least two candidates",
            log_p.shape(),
            log_q.shape()
        )));
    }
    let mut values = Vec::with_capacity(rows * columns);
    for ((row, candidate), &value) in log_p.indexed_iter() {
        let of_proposal = log_q[[row, candidate]];
        let is_start = candidate == 0;
        if value.is_nan() || value == f64::INFINITY || is_start && value.is_infinite() {
            let told = format!("log_p[{row}, {candidate}] is {value}");
            return Err(PyValueError::new_err(format!(
                "{told}, but must be finite, or minus infinity for a candidate outside the support other than the first"
            )));
        }
        if !of_proposal.is_finite() {
            return Err(PyValueError::new_err(format!(
                "log_q[{row}, {candidate}] is {of_proposal}, but must be finite"
            )));
        }
        values.push(value - of_proposal);
    }
    let log_w = LogWeights::from_values(values, columns);
    let weights = method.weigh(&log_w).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{method} has no weights of its own; one of {}",
            self::methods().join(", ")
        ))
    })?;
    weights.values().to_pyarray(py).reshape([rows, columns])
}

/// `log Z` of independent estimates `log Z-hat`, its standard error, their effective number, and whether few dominate.
#[pyfunction]
pub fn log_z_of_estimates(
    log_z_hats: PyReadonlyArray1<'_, f64>,
) -> PyResult<(f64, f64, f64, bool)> {
    let log_z_hats = log_z_hats.as_array().to_vec();
    if log_z_hats.len() < 2 {
        return Err(PyValueError::new_err("at least two estimates, for an error bar"));
    }
    let found = LogZ::from_estimates(&log_z_hats);
    Ok((found.log_z, found.standard_error, found.effective_estimates, found.is_collapsed()))
}

/// `log Z-hat` by the optimal bridge, from `log p~ - log q` at draws of the proposal and at draws of the model.
#[pyfunction]
pub fn bridge_sampling(
    log_w_proposal: PyReadonlyArray1<'_, f64>,
    log_w_model: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let [of_q, of_p] = [log_w_proposal, log_w_model].map(|array| array.as_array().to_vec());
    if of_q.is_empty() || of_p.is_empty() {
        return Err(PyValueError::new_err("draws of both kinds are needed"));
    }
    Ok(zhat::evaluate::bridge_sampling(&of_q, &of_p))
}

/// Ancestors by systematic resampling: places of the particles that go on, given their weights.
#[pyfunction]
pub fn systematic<'py>(
    py: Python<'py>,
    weights: PyReadonlyArray1<'py, f64>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let weights = weights.as_array().to_vec();
    let total: f64 = weights.iter().sum();
    if !(total.is_finite() && total > 0.0) {
        return Err(PyValueError::new_err("weights with a finite sum above 0"));
    }
    let weights: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    let mut rng = Streams::new(seed).stream("resampling", 0, 0);
    let ancestors = Resampling::Systematic.ancestors(&weights, &mut rng);
    Ok(ancestors.into_iter().map(|at| at as i64).collect::<Vec<_>>().to_pyarray(py))
}
