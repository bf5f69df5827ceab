//! Files: one exporter per format, each written under a temporary name and then renamed, so that none is ever half there.

mod atomic;
pub mod csv;
pub mod figure;
pub mod json;
pub mod page;

pub use atomic::{PendingFile, output_directory, replace_file, write_atomically};
