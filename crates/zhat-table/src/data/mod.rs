//! Tables: read, checked, dequantised, split, standardised and written; built-in sets whose density is known.
//!
//! ```
//! use zhat_table::data::{ReadOptions, Source};
//! # use rand::SeedableRng;
//! # let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
//! let source = Source::parse("builtin:pinwheel")?;
//! let options = ReadOptions { max_rows: Some(1000), ..Default::default() };
//! let loaded = source.load(&options, &mut rng)?;
//! assert_eq!((loaded.table.rows(), loaded.table.dimension()), (1000, 2));
//! # Ok::<(), zhat_table::data::Error>(())
//! ```

pub mod benchmark;
pub mod builtin;
mod carried;
mod cell;
mod checks;
mod columns;
mod dequantise;
mod discrete;
mod error;
mod fill;
mod frame;
mod gather;
pub mod kinds;
mod marginal;
mod nearest;
mod options;
mod read;
mod rhythm;
mod shape;
mod source;
mod split;
mod standardise;
pub mod stored;
mod table;
mod typed;
mod write;

pub use builtin::{Builtin, Entropy};
pub use carried::Carried;
pub use checks::{Warning, check};
pub use dequantise::{Dequantise, dequantise};
pub use discrete::{Discrete, Grid};
pub use error::{Error, Place, Result};
pub(crate) use fill::fill;
pub use frame::{Frame, FrameCells, FrameColumn, MISSING_MOMENT, NumberOf, WholeOf};
pub use gather::Flow;
pub(crate) use kinds::probabilities_in_words;
pub use kinds::{ColumnKind, Form, Kind, SaidKind};
pub use marginal::MarginalMap;
pub(crate) use nearest::{listing, nearest};
pub use options::{Format, Header, Missing, ReadOptions, parse_delimiter};
pub use read::{Reading, read, read_batches};
pub use rhythm::Rhythm;
pub(crate) use source::in_order;
pub use source::{Asked, BUILTIN_ROWS, IN_MEMORY, Loaded, Source, keep};
pub use split::{Order, Split, SplitOptions};
pub use standardise::{Marginals, Shape, Standardiser};
pub use table::{ColumnStatistics, Table};
pub use write::{Precision, TableWriter, write};
