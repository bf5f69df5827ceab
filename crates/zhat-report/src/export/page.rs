//! `report.html`: a page as one file.

use std::path::Path;

use super::write_atomically;
use crate::{error::ReportError, page::Page};

/// Writes the page to `path`.
pub fn write(path: &Path, page: &Page) -> Result<(), ReportError> {
    write_atomically(path, page.to_html().as_bytes())
}
