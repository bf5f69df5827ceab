//! Files of JSON that carry a digest of themselves, so that no change of them goes unnoticed.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The key of a file's own digest, which is its last.
const KEY: &str = "sha256";
/// What stands for the digest while it is computed: as long as one.
const BLANK: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Whether bytes are those that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    /// They are.
    Whole,
    /// They are not.
    Broken,
    /// There is no digest in them.
    None,
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A record as JSON with more keys, and at its end the SHA-256 of the file in which that digest is all zeros.
///
/// # Panics
/// If the record is no plain data with fields.
pub(crate) fn sealed(record: &impl Serialize, more: &[(&str, &str)]) -> Vec<u8> {
    let text = serde_json::to_string_pretty(record).expect("a record is plain data");
    let mut text = text.strip_suffix("\n}").expect("a record has fields").to_owned();
    for (key, value) in more.iter().chain(&[(KEY, BLANK)]) {
        text += &format!(",\n  \"{key}\": \"{value}\"");
    }
    text += "\n}\n";
    let digest = sha256(text.as_bytes());
    let at = place(&text).expect("it is there");
    text.replace_range(at..at + BLANK.len(), &digest);
    text.into_bytes()
}

/// Whether bytes are as they were sealed.
pub(crate) fn check(bytes: &[u8]) -> Seal {
    let Ok(text) = std::str::from_utf8(bytes) else { return Seal::Broken };
    let Some(at) = place(text) else { return Seal::None };
    let Some(digest) = text.get(at..at + BLANK.len()) else { return Seal::Broken };
    let blank = [&text[..at], BLANK, &text[at + BLANK.len()..]].concat();
    if sha256(blank.as_bytes()) == digest { Seal::Whole } else { Seal::Broken }
}

/// Where the digest is.
fn place(text: &str) -> Option<usize> {
    let key = format!("\"{KEY}\": \"");
    text.rfind(&key).map(|at| at + key.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Record {
        log_z: f64,
        columns: Vec<String>,
    }

    #[test]
    fn every_flipped_bit_and_every_cut_of_a_sealed_file_is_noticed() {
        let record = Record { log_z: -1.25, columns: vec!["a".into(), "b\"sha256\"".into()] };
        let bytes = sealed(&record, &[("weights_sha256", "abc")]);
        assert_eq!(check(&bytes), Seal::Whole);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&value["log_z"], &value["weights_sha256"]), (&(-1.25).into(), &"abc".into()));
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(check(&flipped), Seal::Whole, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_ne!(check(&bytes[..length]), Seal::Whole, "cut at {length}");
        }
        assert_eq!(check(b"{\n  \"log_z\": 1\n}"), Seal::None);
    }
}
