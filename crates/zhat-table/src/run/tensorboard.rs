//! TensorBoard event files: scalars as records of a length, a checksum, an `Event` message and another checksum.
//!
//! The messages are few and fixed, so they are written by hand: field numbers are those of TensorFlow's `event.proto`
//! and `summary.proto`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Result, TableError};

/// An open event file.
#[derive(Debug)]
pub struct EventFile {
    file: File,
    path: PathBuf,
}

impl EventFile {
    /// A new event file in a directory; TensorBoard reads all of them together, so a resumed run opens another.
    pub fn create(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).map_err(|source| TableError::io(directory, source))?;
        let name = format!("events.out.tfevents.{:.6}.zhat", now());
        let path = directory.join(name);
        let file = File::create(&path).map_err(|source| TableError::io(&path, source))?;
        let mut events = Self { file, path };
        let mut message = double(1, now());
        message.extend(bytes(3, b"brain.Event:2"));
        events.record(&message)?;
        Ok(events)
    }

    /// Writes scalars of a step.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let summary: Vec<u8> = values
            .iter()
            .flat_map(|(tag, value)| {
                let mut inner = bytes(1, tag.as_bytes());
                inner.extend(float(2, *value as f32));
                bytes(1, &inner)
            })
            .collect();
        let mut message = double(1, now());
        message.extend(varint(2 << 3));
        message.extend(varint(step));
        message.extend(bytes(5, &summary));
        self.record(&message)
    }

    fn record(&mut self, message: &[u8]) -> Result<()> {
        let length = (message.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend(masked_crc(&length).to_le_bytes());
        record.extend(message);
        record.extend(masked_crc(message).to_le_bytes());
        self.file.write_all(&record).map_err(|source| TableError::io(&self.path, source))
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of the wire type "64 bits".
fn double(field: u64, value: f64) -> Vec<u8> {
    [varint(field << 3 | 1), value.to_le_bytes().to_vec()].concat()
}

/// A field of the wire type "32 bits".
fn float(field: u64, value: f32) -> Vec<u8> {
    [varint(field << 3 | 5), value.to_le_bytes().to_vec()].concat()
}

/// A field of the wire type "length and bytes".
fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// TensorFlow's masking of a checksum, so that the checksum of a text that holds checksums is not weak.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), reflected, bit by bit: a hundred bytes a step need no table.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_has_its_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn numbers_are_written_in_groups_of_seven_bits() {
        assert_eq!(varint(1), [1]);
        assert_eq!(varint(300), [0xac, 0x02]);
    }
}
