//! A figure as two files that show the same: `NAME.svg` and `NAME.png`.

use std::path::{Path, PathBuf};

use super::write_atomically;
use crate::{error::ReportError, figure::Figure};

/// Pixels of the PNG per unit of the SVG: twice, so that it is sharp in print and on dense screens.
pub const PNG_SCALE: f32 = 2.0;

/// Writes `NAME.svg` and `NAME.png` into `directory`; gives their paths.
pub fn write(directory: &Path, name: &str, figure: &Figure) -> Result<[PathBuf; 2], ReportError> {
    let drawing = figure.draw()?;
    let paths = ["svg", "png"].map(|extension| directory.join(format!("{name}.{extension}")));
    write_atomically(&paths[0], drawing.svg().as_bytes())?;
    write_atomically(&paths[1], &drawing.png(PNG_SCALE)?)?;
    Ok(paths)
}
