//! Files for the tests: a fresh directory per test, and every format written by hand.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A fixed stream.
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// An empty directory for one test.
pub fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Writes bytes to a file in a directory.
pub fn file(directory: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// The bytes compressed in the way the ending says.
pub fn compressed(ending: &str, bytes: &[u8]) -> Vec<u8> {
    match ending {
        "gz" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        "xz" => {
            let options = lzma_rust2::XzOptions::with_preset(3);
            let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        "zst" => zstd::encode_all(bytes, 3).unwrap(),
        "bz2" => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), Default::default());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        other => panic!("{other} is no compression"),
    }
}

/// An NPY file of given type; `bytes` are the numbers in their order.
pub fn npy(descr: &str, column_order: bool, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let order = if column_order { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}
