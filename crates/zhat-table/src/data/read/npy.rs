//! NumPy arrays: one or two dimensions, floats or integers, in row or in column order.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::data::columns::{choose, numbered};
use crate::data::error::{Error, Place, Result, Unit};
use crate::data::gather::{Flow, Gather, Target};
use crate::data::options::ReadOptions;

use super::npy_header::{MAGIC, NpyHeader};
use super::open::{Compression, Opened};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// More columns than this are a damaged header or another kind of array; no density is fitted to them.
const MOST_COLUMNS: usize = 1 << 20;

pub(super) fn read<'a>(
    opened: Opened,
    options: &ReadOptions,
    target: Target<'a>,
) -> Result<Gather<'a>> {
    if !opened.head.starts_with(MAGIC) {
        return Err(opened.wrong_magic("an NPY file"));
    }
    let unsupported = |detail| Error::Unsupported {
        file: opened.path.clone(),
        detail,
        advice: "Save a two-dimensional array of float32 or float64 with numpy.save.",
    };
    let header = NpyHeader::read(opened.head.as_slice()).map_err(unsupported)?;
    if header.columns > MOST_COLUMNS {
        return Err(unsupported(format!("the array has {} columns", header.columns)));
    }
    let size = header
        .columns
        .checked_mul(header.number.bytes)
        .and_then(|row| row.checked_mul(header.rows))
        .ok_or_else(|| unsupported("the NPY header promises more than memory can hold".into()))?;
    if opened.compression == Compression::None && opened.length - header.offset < size as u64 {
        let rows = (opened.length - header.offset) as usize / (size / header.rows);
        return Err(short(&opened, rows, header.rows));
    }
    let names: Vec<String> = (0..header.columns).map(numbered).collect();
    let mut gather = Gather::new(choose(&opened.path, &names, options)?, options, target);
    let array = Array { opened: &opened, header };
    match (array.header.column_order, opened.compression) {
        (false, _) => array.rows_in_order(&mut gather)?,
        (true, Compression::None) => array.columns_by_seeking(&mut gather)?,
        (true, _) => array.columns_in_order(&mut gather)?,
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
        let NpyHeader { number, rows, columns, .. } = self.header;
        if self.opened.compression == Compression::None {
            gather.expect_rows(rows);
        }
        let mut stream = self.numbers()?;
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
                    *cell = number.decode(&row[index * number.bytes..]);
                }
                if self.push(gather, &cells)? == Flow::Full {
                    return Ok(());
                }
            }
            left -= now;
        }
        Ok(())
    }

    /// Column order in a plain file: a piece of every column at a time, so that nothing is held twice.
    fn columns_by_seeking(&self, gather: &mut Gather<'_>) -> Result<()> {
        let NpyHeader { number, rows, offset, .. } = self.header;
        gather.expect_rows(rows);
        let unreadable = |source| Error::Unreadable { file: self.opened.path.clone(), source };
        let mut file = File::open(&self.opened.path).map_err(unreadable)?;
        let indices: Vec<usize> = gather.columns.iter().map(|column| column.index).collect();
        let piece = CHUNK / number.bytes;
        let mut buffers = vec![vec![0; piece * number.bytes]; indices.len()];
        let mut cells = vec![0.0; indices.len()];
        for first in (0..rows).step_by(piece) {
            let now = piece.min(rows - first);
            for (buffer, index) in buffers.iter_mut().zip(&indices) {
                let at = offset + ((index * rows + first) * number.bytes) as u64;
                file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
                let bytes = &mut buffer[..now * number.bytes];
                file.read_exact(bytes).map_err(|_| self.short(gather))?;
            }
            for row in 0..now {
                for (cell, buffer) in cells.iter_mut().zip(&buffers) {
                    *cell = number.decode(&buffer[row * number.bytes..]);
                }
                if self.push(gather, &cells)? == Flow::Full {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Column order in a compressed file: the columns are held as they come, then turned into rows.
    fn columns_in_order(&self, gather: &mut Gather<'_>) -> Result<()> {
        let NpyHeader { number, rows, columns, .. } = self.header;
        let mut stream = self.numbers()?;
        let mut held: Vec<Vec<f64>> = vec![Vec::new(); columns];
        let mut buffer = vec![0; CHUNK - CHUNK % number.bytes];
        for (index, column) in held.iter_mut().enumerate() {
            let is_chosen = gather.columns.iter().any(|column| column.index == index);
            let mut left = rows;
            while left > 0 {
                let now = left.min(buffer.len() / number.bytes);
                let bytes = &mut buffer[..now * number.bytes];
                stream.read_exact(bytes).map_err(|_| self.short(gather))?;
                if is_chosen {
                    column.extend(bytes.chunks_exact(number.bytes).map(|b| number.decode(b)));
                }
                left -= now;
            }
        }
        let chosen: Vec<&[f64]> =
            gather.columns.iter().map(|column| held[column.index].as_slice()).collect();
        for row in 0..rows {
            let cells: Vec<f64> = chosen.iter().map(|column| column[row]).collect();
            if self.push(gather, &cells)? == Flow::Full {
                break;
            }
        }
        Ok(())
    }

    /// The stream of numbers behind the header.
    fn numbers(&self) -> Result<Box<dyn Read>> {
        let mut stream = self.opened.stream()?;
        std::io::copy(&mut stream.by_ref().take(self.header.offset), &mut std::io::sink())
            .map_err(|error| self.opened.damaged(0, &error))?;
        Ok(stream)
    }

    fn push(&self, gather: &mut Gather, cells: &[f64]) -> Result<Flow> {
        gather.push(cells).map_err(|refusal| {
            let column = &gather.columns[refusal.column];
            let place = Place {
                file: self.opened.path.clone(),
                unit: Unit::Row,
                number: gather.seen() as u64 + 1,
                column: Some((column.index + 1, column.name.clone())),
            };
            refusal.at(place, cells[refusal.column].to_string())
        })
    }

    fn short(&self, gather: &Gather<'_>) -> Error {
        short(self.opened, gather.seen(), self.header.rows)
    }
}

fn short(opened: &Opened, rows: usize, promised: usize) -> Error {
    let error = std::io::Error::other(format!("its header promises {promised} rows"));
    opened.damaged(rows, &error)
}
