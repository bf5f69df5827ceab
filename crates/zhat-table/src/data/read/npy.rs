//! NumPy arrays: one or two dimensions, floats or integers, in row or in column order.

use std::io::{Cursor, Read, Seek, SeekFrom};

use crate::data::columns::{choose, numbered};
use crate::data::error::{Error, Result};
use crate::data::gather::{Flow, Gather, Target};
use crate::data::options::ReadOptions;

use super::npy_header::{MAGIC, NpyHeader};
use super::open::{Compression, Opened};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;

pub(super) fn read<'a>(
    opened: Opened,
    options: &ReadOptions,
    target: Target<'a>,
) -> Result<Gather<'a>> {
    if !opened.head.starts_with(MAGIC) {
        return Err(opened.wrong_magic("an NPY file"));
    }
    let unsupported = |detail: String| {
        let advice = "Save a two-dimensional array of float32 or float64 with numpy.save.";
        Error::refused(&opened.path, detail, advice)
    };
    let header = NpyHeader::read(&opened.head).map_err(unsupported)?;
    options.check_columns(&opened.path, header.columns)?;
    options.check_carry(&opened.path)?;
    let row = header.columns * header.number.bytes;
    let end = (row.checked_mul(header.rows))
        .and_then(|size| header.offset.checked_add(size as u64))
        .ok_or_else(|| unsupported("the NPY header promises more than memory can hold".into()))?;
    if let Some(length) = opened.length.filter(|_| opened.compression == Compression::None)
        && length < end
    {
        let rows = (length - header.offset) as usize / row;
        return Err(short(&opened, rows, header.rows));
    }
    let names: Vec<String> = (0..header.columns).map(numbered).collect();
    let mut gather = Gather::new(choose(&opened.path, &names, options)?, options, target);
    let array = Array { opened: &opened, header };
    match (array.header.column_order, opened.compression) {
        (false, _) => array.rows_in_order(&mut gather)?,
        (true, Compression::None) => array.columns(opened.seekable()?, &mut gather)?,
        (true, _) => {
            // Nothing can be sought in a compressed file, so its numbers are held.
            let mut bytes = Vec::new();
            let read = opened.stream()?.take(end).read_to_end(&mut bytes);
            read.map_err(|error| opened.damaged(0, error))?;
            if (bytes.len() as u64) < end {
                return Err(short(&opened, 0, array.header.rows));
            }
            array.columns(Cursor::new(bytes), &mut gather)?;
        }
    }
    Ok(gather)
}

/// An array whose header has been read.
struct Array<'a> {
    opened: &'a Opened,
    header: NpyHeader,
}

impl Array<'_> {
    /// Row order: a stream of rows.
    fn rows_in_order(&self, gather: &mut Gather<'_>) -> Result<()> {
        let NpyHeader { number, rows, columns, offset, .. } = self.header;
        if self.opened.compression == Compression::None && self.opened.length.is_some() {
            gather.expect_rows(rows);
        }
        let mut stream = self.opened.stream()?;
        std::io::copy(&mut stream.by_ref().take(offset), &mut std::io::sink())
            .map_err(|error| self.opened.damaged(0, error))?;
        let indices: Vec<usize> = gather.columns.iter().map(|column| column.index).collect();
        let row_bytes = columns * number.bytes;
        let mut buffer = vec![0; row_bytes * (CHUNK / row_bytes).max(1)];
        let mut cells = vec![0.0; indices.len()];
        let mut left = rows;
        while left > 0 {
            let now = left.min(buffer.len() / row_bytes);
            let bytes = &mut buffer[..now * row_bytes];
            stream.read_exact(bytes).map_err(|_| self.short(gather))?;
            for row in bytes.chunks_exact(row_bytes) {
                for (cell, index) in cells.iter_mut().zip(&indices) {
                    *cell = (number.decode)(&row[index * number.bytes..]);
                }
                if gather.push_row(&self.opened.path, &cells)? == Flow::Full {
                    return Ok(());
                }
            }
            left -= now;
        }
        Ok(())
    }

    /// Column order: a piece of every column at a time, so that nothing is held twice.
    fn columns(&self, mut file: impl Read + Seek, gather: &mut Gather<'_>) -> Result<()> {
        let NpyHeader { number, rows, offset, .. } = self.header;
        if self.opened.length.is_some() {
            gather.expect_rows(rows);
        }
        let indices: Vec<usize> = gather.columns.iter().map(|column| column.index).collect();
        let piece = (CHUNK / number.bytes).min(rows.max(1));
        let mut buffers = vec![vec![0; piece * number.bytes]; indices.len()];
        let mut cells = vec![0.0; indices.len()];
        for first in (0..rows).step_by(piece) {
            let now = piece.min(rows - first);
            for (buffer, index) in buffers.iter_mut().zip(&indices) {
                let at = offset + ((index * rows + first) * number.bytes) as u64;
                let bytes = &mut buffer[..now * number.bytes];
                let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes));
                read.map_err(|_| self.short(gather))?;
            }
            for row in 0..now {
                for (cell, buffer) in cells.iter_mut().zip(&buffers) {
                    *cell = (number.decode)(&buffer[row * number.bytes..]);
                }
                if gather.push_row(&self.opened.path, &cells)? == Flow::Full {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn short(&self, gather: &Gather<'_>) -> Error {
        short(self.opened, gather.seen(), self.header.rows)
    }
}

fn short(opened: &Opened, rows: usize, promised: usize) -> Error {
    opened.damaged(rows, format!("its header promises {promised} rows"))
}
