//! Results of zhat's experiments and fits, and every way they are shown: JSON, CSV, figures, HTML pages, plain tables.
//!
//! Nothing here knows a tensor, prints, or reads arguments: numbers go in, text and bytes come out. Only [`export`]
//! touches the file system.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod error;
pub mod export;
pub mod figure;
pub mod final_values;
mod markup;
pub mod number;
pub mod page;
pub mod record;
pub mod setting;
pub mod summary;
pub mod table;

pub use error::ReportError;
pub use record::{Arm, Claim, Decision, Experiment};
pub use setting::Setting;
pub use summary::{Curves, Quantiles, log_spaced_iterations, summarise};
pub use table::{Align, Table};
