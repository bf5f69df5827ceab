//! Columns brought to mean 0 and standard deviation 1 and, if wanted, on to normal scores or halfway there; and back into the units of the data.

use serde::{Deserialize, Serialize};
use zhat::ar::{Cycle, FeatureKind, Turn};
use zhat::named;
use zhat::rng::Stream;

use super::error::{Error, Result};
use super::marginal::MarginalMap;
use super::rhythm::Rhythm;
pub use super::shape::Shape;
use super::table::Table;

/// What the networks are given of each column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marginals {
    /// Standard units: mean 0 and standard deviation 1.
    #[default]
    Standard,
    /// Normal scores, by a smooth map of the standard units; standard units where the rows are too few for one.
    Gaussian,
    /// Halfway between standard units and normal scores where tails are light, normal scores where they are heavy.
    Halfway,
    /// What Gaussian mixtures are better with on rows that are left out, standard units or maps: to normal scores below 1,000 rows or five
    /// columns, else `Halfway`. Where they cannot tell, standard units below 1,000 rows and maps above.
    Auto,
}

named!(Marginals, "marginals", { Standard: "standard", Gaussian: "gaussian", Halfway: "halfway", Auto: "auto" });

/// From the units of the data to the features of a model: mean and standard deviation of every column, as found in the
/// training part, and the map of its standard units towards normal scores if it has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardiser {
    /// Mean of every column.
    pub mean: Vec<f64>,
    /// Standard deviation (sigma) of every column.
    pub std_dev: Vec<f64>,
    /// Map of every column's standard units, where there is one; empty where none has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Option<MarginalMap>>,
    /// Rhythm of every column's standard units, where it comes round again; empty where none does. Such a column has no map.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rhythms: Vec<Option<Rhythm>>,
    /// What values every column has; empty where all are any numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<Shape>,
}

impl Standardiser {
    /// Mean and standard deviation of a table, summed in 64 bits; missing cells are set aside.
    pub fn fit(table: &Table) -> Result<Self> {
        let statistics = table.statistics();
        for (name, column) in table.columns().iter().zip(&statistics) {
            if !(column.std_dev.is_finite() && column.std_dev > 0.0) {
                return Err(Error::Constant {
                    file: "the training part".into(),
                    name: name.clone(),
                    value: column.minimum,
                    others: format!("(all but {name})"),
                });
            }
        }
        Ok(Self::new(
            statistics.iter().map(|column| column.mean).collect(),
            statistics.iter().map(|column| column.std_dev).collect(),
        ))
    }

    /// The same with the maps of a table's columns, if they are wanted.
    pub fn with_marginals(self, table: &Table, marginals: Marginals) -> Self {
        let map = |column: usize| {
            let values = table.column(column).map(f64::from);
            let values = values.map(|value| self.standardised(column, value));
            match marginals {
                Marginals::Standard => None,
                Marginals::Gaussian => MarginalMap::fit(values),
                Marginals::Halfway | Marginals::Auto => MarginalMap::fit_halfway(values),
            }
        };
        let mut maps: Vec<_> = (0..table.dimension()).map(map).collect();
        if maps.iter().all(Option::is_none) {
            maps.clear();
        }
        Self { maps, ..self }
    }

    /// With which marginals its maps come out as they are.
    pub fn marginals(&self) -> Marginals {
        let mut maps = self.maps.iter().flatten();
        match (self.maps.is_empty(), maps.any(MarginalMap::is_halfway)) {
            (true, _) => Marginals::Standard,
            (false, true) => Marginals::Halfway,
            (false, false) => Marginals::Gaussian,
        }
    }

    /// The same with the rhythms of a table's columns, of which some come round again after so much; `shapes` are those of its
    /// columns. What is a circle already has neither rhythm nor map.
    pub(crate) fn with_cycles(
        mut self,
        table: &Table,
        periods: &[Option<f64>],
        shapes: &[&Shape],
    ) -> Self {
        let mut rhythms = vec![None; self.dimension()];
        for (column, period) in periods.iter().enumerate() {
            let Some(period) = period else { continue };
            if let Some(map) = self.maps.get_mut(column) {
                *map = None;
            }
            if matches!(shapes[column], Shape::Circle { .. }) {
                continue;
            }
            let std_dev = self.std_dev[column];
            let values =
                table.column(column).map(|value| (f64::from(value) - self.mean[column]) / std_dev);
            let cell = match shapes[column].edges().as_slice() {
                [first, second, ..] => {
                    Some([(first - self.mean[column]) / std_dev, (second - first) / std_dev])
                }
                _ => None,
            };
            rhythms[column] = Some(Rhythm::fit(values, period / std_dev, cell));
        }
        if rhythms.iter().any(Option::is_some) {
            self.rhythms = rhythms;
        }
        if self.maps.iter().all(Option::is_none) {
            self.maps.clear();
        }
        self
    }

    /// Features that come round again, as a model has to know them.
    pub fn cycles(&self) -> Vec<Cycle> {
        let turn = |column: usize| match (self.rhythm(column), self.shape(column)) {
            (Some(rhythm), _) => {
                Some(Turn::Line { radians: std::f64::consts::TAU / rhythm.period() })
            }
            (None, Some(Shape::Circle { .. })) => {
                Some(Turn::Circle { scale: self.std_dev[column], shift: self.mean[column] })
            }
            _ => None,
        };
        let cycle = |feature: usize| turn(feature).map(|turn| Cycle { feature, turn });
        (0..self.dimension()).filter_map(cycle).collect()
    }

    /// Mean and standard deviation of every column, without maps.
    pub fn new(mean: Vec<f64>, std_dev: Vec<f64>) -> Self {
        Self { mean, std_dev, maps: Vec::new(), rhythms: Vec::new(), shapes: Vec::new() }
    }

    /// No change at all.
    pub fn identity(dimension: usize) -> Self {
        Self::new(vec![0.0; dimension], vec![1.0; dimension])
    }

    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// From the units of the data to features, in place; rows one after the other.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn apply(&self, values: &mut [f32]) {
        self.each(values, |column, value| self.mapped(column, self.standardised(column, value)));
    }

    /// Rows in the units of the data as features.
    pub fn features(&self, rows: &[f32]) -> Vec<f32> {
        let mut rows = rows.to_vec();
        self.apply(&mut rows);
        rows
    }

    /// Rows in the units of the data as rows in standard deviations from the mean, whether there are maps or not.
    pub fn standard(&self, rows: &[f32]) -> Vec<f32> {
        let mut rows = rows.to_vec();
        self.each(&mut rows, |column, value| self.standardised(column, value));
        rows
    }

    /// From features to the units of the data, in place.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn invert(&self, values: &mut [f32]) {
        self.each(values, |column, value| self.in_units(column, value));
    }

    /// A feature in the units of the data.
    pub fn in_units(&self, column: usize, feature: f64) -> f64 {
        if let Some(Shape::Atoms { values, .. }) = self.shape(column)
            && let Some(atom) = self.atom(column, feature as f32)
        {
            return values[atom];
        }
        let standard = match (self.map(column), self.rhythm(column)) {
            (Some(map), _) => map.inverse(feature),
            (None, Some(rhythm)) => rhythm.inverse(feature),
            (None, None) => feature,
        };
        let number = standard * self.std_dev[column] + self.mean[column];
        self.shape(column).map_or(number, |shape| shape.value(number))
    }

    /// `sum_d log T'_d(x_d)` of every row, where `T` leads from the units of the data to features. A log-density in the units
    /// of the data is the one of the features plus this (the change of variables); NaN where a cell is missing.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn log_derivatives(&self, rows: &[f32]) -> Vec<f64> {
        let cells = self.cell_log_derivatives(rows);
        cells.chunks_exact(self.dimension()).map(|row| row.iter().sum()).collect()
    }

    /// `log T'_d(x_d)` of every cell; NaN where it is missing.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn cell_log_derivatives(&self, rows: &[f32]) -> Vec<f64> {
        assert_eq!(rows.len() % self.dimension(), 0, "the values fill whole rows");
        let log_scales: Vec<f64> = self.std_dev.iter().map(|std_dev| std_dev.ln()).collect();
        let of_cell = |(column, &value): (usize, &f32)| {
            let standard = self.standardised(column, f64::from(value));
            let of_map = match (self.map(column), self.rhythm(column)) {
                _ if value.is_nan() => f64::NAN,
                (Some(map), _) => map.log_derivative(standard),
                (None, Some(rhythm)) => rhythm.log_derivative(standard),
                (None, None) => 0.0,
            };
            match self.shape(column) {
                // A value that has a probability has no density to change.
                Some(shape) if shape.is_counted() && !value.is_nan() => 0.0,
                Some(shape) if shape.atom(f64::from(value)).is_some() => 0.0,
                Some(shape) => of_map - log_scales[column] + shape.log_derivative(f64::from(value)),
                None => of_map - log_scales[column],
            }
        };
        rows.chunks_exact(self.dimension())
            .flat_map(|row| row.iter().enumerate().map(of_cell))
            .collect()
    }

    /// Which atom of its column a feature is at.
    pub(crate) fn atom(&self, column: usize, feature: f32) -> Option<usize> {
        let Some(Shape::Atoms { places, .. }) = self.shape(column) else { return None };
        places.iter().position(|place| self.feature(column, *place) == feature)
    }

    /// Takes away the features that are at an atom, as if they were missing: what is left is where the density is.
    pub(crate) fn blank_atoms(&self, features: &mut [f32]) {
        for row in features.chunks_exact_mut(self.dimension()) {
            for (column, x) in row.iter_mut().enumerate() {
                if self.atom(column, *x).is_some() {
                    *x = f32::NAN;
                }
            }
        }
    }

    /// The feature of a number on the line.
    fn feature(&self, column: usize, number: f64) -> f32 {
        self.mapped(column, (number - self.mean[column]) / self.std_dev[column]) as f32
    }

    /// The feature of a number in standard units.
    fn mapped(&self, column: usize, standard: f64) -> f64 {
        match (self.map(column), self.rhythm(column)) {
            (Some(map), _) => map.forward(standard),
            (None, Some(rhythm)) => rhythm.forward(standard),
            (None, None) => standard,
        }
    }

    fn rhythm(&self, column: usize) -> Option<&Rhythm> {
        self.rhythms.get(column).and_then(Option::as_ref)
    }

    fn map(&self, column: usize) -> Option<&MarginalMap> {
        self.maps.get(column).and_then(Option::as_ref)
    }

    /// Whether a column's values have probabilities, and not a density.
    pub fn is_counted(&self, column: usize) -> bool {
        self.shape(column).is_some_and(Shape::is_counted)
    }

    /// Moves the features of columns with cells anywhere in their cells.
    pub(crate) fn spread(&self, features: &mut [f32], rng: &mut Stream) {
        let kinds = self.kinds();
        for row in features.chunks_exact_mut(self.dimension()) {
            for (x, kind) in row.iter_mut().zip(&kinds).filter(|(x, _)| !x.is_nan()) {
                if let FeatureKind::Cells { .. } = kind {
                    let [low, high] = kind.cell(kind.index_of(*x).expect("a cell"));
                    *x = low + rng.uniform() as f32 * (high - low);
                }
            }
        }
    }

    fn shape(&self, column: usize) -> Option<&Shape> {
        self.shapes.get(column)
    }

    fn standardised(&self, column: usize, value: f64) -> f64 {
        let number = self.shape(column).map_or(value, |shape| shape.number(value));
        (number - self.mean[column]) / self.std_dev[column]
    }

    /// What a model has to know of every feature; empty where all are any numbers.
    pub fn kinds(&self) -> Vec<FeatureKind> {
        let kind = |(column, shape): (usize, &Shape)| match shape {
            Shape::Classes { levels } => FeatureKind::Categorical { levels: *levels },
            Shape::Values { .. } => {
                let edges = shape.edges().into_iter();
                FeatureKind::Cells { edges: edges.map(|edge| self.feature(column, edge)).collect() }
            }
            Shape::Atoms { places, .. } => {
                let values = places.iter().map(|place| self.feature(column, *place));
                FeatureKind::Atoms { values: values.collect() }
            }
            _ => FeatureKind::Continuous,
        };
        let kinds: Vec<FeatureKind> = self.shapes.iter().enumerate().map(kind).collect();
        match kinds.iter().all(|kind| *kind == FeatureKind::Continuous) {
            true => Vec::new(),
            false => kinds,
        }
    }

    /// The same for columns some of which are classes, which have neither mean nor deviation: this one is of the others alone.
    pub(crate) fn with_shapes(self, shapes: Vec<Shape>) -> Self {
        if shapes.iter().all(|shape| *shape == Shape::Line) {
            return self;
        }
        let mut whole = Self::identity(shapes.len());
        let numbers = (0..shapes.len()).filter(|&column| !shapes[column].is_classes());
        let mut maps = vec![None; shapes.len()];
        let mut rhythms = vec![None; shapes.len()];
        for (number, column) in numbers.enumerate() {
            whole.mean[column] = self.mean[number];
            whole.std_dev[column] = self.std_dev[number];
            maps[column] = self.maps.get(number).cloned().flatten();
            rhythms[column] = self.rhythm(number).cloned();
        }
        if rhythms.iter().any(Option::is_some) {
            whole.rhythms = rhythms;
        }
        if maps.iter().any(Option::is_some) {
            whole.maps = maps;
        }
        Self { shapes, ..whole }
    }

    fn each(&self, values: &mut [f32], change: impl Fn(usize, f64) -> f64) {
        assert_eq!(values.len() % self.dimension(), 0, "the values fill whole rows");
        for row in values.chunks_exact_mut(self.dimension()) {
            for (column, value) in row.iter_mut().enumerate() {
                *value = change(column, f64::from(*value)) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let values = (0..3000).map(|i| ((i * 7919) % 1009) as f32 * 0.01 + 500.0 * (i % 3) as f32);
        Table::new(["a", "b", "c"].map(String::from).to_vec(), values.collect())
    }

    #[test]
    fn standard_units_have_mean_0_and_deviation_1_and_go_back() {
        let original = table();
        let standardiser = Standardiser::fit(&original).unwrap();
        let mut changed = original.clone();
        standardiser.apply(changed.values_mut());
        for column in changed.statistics() {
            assert!(column.mean.abs() < 1e-5 && (column.std_dev - 1.0).abs() < 1e-5);
        }
        standardiser.invert(changed.values_mut());
        for (back, was) in changed.values().iter().zip(original.values()) {
            assert!((back - was).abs() <= 4.0 * f32::EPSILON * was.abs().max(1.0));
        }
    }

    #[test]
    fn the_log_derivative_corrects_a_log_density() {
        // A Gaussian with sigma 2 and 5: its log-density at the mean is -log(2 pi) - log(2 * 5).
        let standardiser = Standardiser::new(vec![1.0, 2.0], vec![2.0, 5.0]);
        let standard = -(2.0 * std::f64::consts::PI).ln();
        let expected = -(2.0 * std::f64::consts::PI * 10.0).ln();
        let found = standardiser.log_derivatives(&[1.0, 2.0, f32::NAN, 2.0]);
        assert!((standard + found[0] - expected).abs() < 1e-12);
        assert!(found[1].is_nan());
    }

    #[test]
    fn features_of_heavy_tails_are_normal_and_go_back_and_their_derivative_is_counted() {
        let mut rng = zhat::rng::Streams::new(2).stream("heavy", 0, 0);
        let mut row = || [1e3 + 40.0 * rng.normal().exp(), f64::from(rng.uniform() < 0.3)];
        let values: Vec<f32> = (0..3000).flat_map(|_| row().map(|value| value as f32)).collect();
        let table = Table::new(vec!["heavy".into(), "two values".into()], values);
        let linear = Standardiser::fit(&table).unwrap();
        assert_eq!(linear.clone().with_marginals(&table, Marginals::Standard), linear);
        let standardiser = linear.clone().with_marginals(&table, Marginals::Gaussian);
        assert!(standardiser.maps[0].is_some() && standardiser.maps[1].is_none());
        assert_eq!(standardiser.standard(table.values()), linear.features(table.values()));

        let features = standardiser.features(table.values());
        let largest = |rows: &[f32]| rows.iter().step_by(2).fold(0f32, |most, x| most.max(x.abs()));
        assert!(largest(&features) < 5.01 && largest(&linear.features(table.values())) > 8.0);
        let mut back = features.clone();
        standardiser.invert(&mut back);
        for (back, was) in back.iter().zip(table.values()) {
            assert!((back - was).abs() <= 1e-6 * was.abs().max(1.0), "{back} {was}");
        }
        for row in table.values().chunks(2).take(200) {
            // dz / dx, over a step of x that 32-bit floats can tell.
            let step = 1e-4 * (row[0] - 1e3);
            let around = [row[0] - step, row[1], row[0] + step, row[1]];
            let features = standardiser.features(&around);
            let slope = f64::from(features[2] - features[0]) / f64::from(around[2] - around[0]);
            let expected = slope.ln() - linear.std_dev[1].ln();
            let found = standardiser.log_derivatives(row)[0];
            assert!((found - expected).abs() < 0.02, "{row:?}: {found} {expected}");
        }
        let text = serde_json::to_string(&standardiser).unwrap();
        assert_eq!(serde_json::from_str::<Standardiser>(&text).unwrap(), standardiser);
    }

    #[test]
    fn a_constant_column_is_refused() {
        let constant = Table::new(vec!["a".into()], vec![2.0; 30]);
        assert!(matches!(Standardiser::fit(&constant), Err(Error::Constant { .. })));
    }

    #[test]
    fn it_survives_json() {
        let standardiser = Standardiser::fit(&table()).unwrap();
        let text = serde_json::to_string(&standardiser).unwrap();
        assert_eq!(serde_json::from_str::<Standardiser>(&text).unwrap(), standardiser);
    }
}
