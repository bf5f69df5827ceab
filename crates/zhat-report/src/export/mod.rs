//! Files: one exporter per format, each written under a temporary name and then renamed, so that none is ever half there.

mod atomic;
pub mod csv;
pub mod figure;
pub mod json;
pub mod page;

pub use atomic::{
    PendingFile, is_running, is_stream, output_directory, remove_leftovers, remove_leftovers_of,
    remove_pending, replace_file, write_atomically,
};
