//! Inputs made of others: bits flipped, bytes and numbers replaced, pieces cut, doubled, moved and put in from elsewhere.

use rand::{Rng, RngExt};

/// Inputs that become longer than this and than what they are made of are cut: short ones are read sooner.
const LONGEST: usize = 4096;

/// Words that readers give a meaning, or should.
const WORDS: &[&[u8]] = &[
    b"nan",
    b"NaN",
    b"inf",
    b"-inf",
    b"NA",
    b"?",
    b"null",
    b"true",
    b"1e999",
    b"-1e-999",
    b"0x10",
    b"1_000",
    b"1,5",
    b"-0",
    b"18446744073709551616",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"4294967296",
    b"2147483648",
    b"65536",
    b"1e38",
    b"3.5e38",
    b"1e308",
    b"\"",
    b"\"\"",
    b"'",
    b"\r\n",
    b"\n",
    b"\r",
    b"\t",
    b";",
    b",",
    b"|",
    b" ",
    b"#",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b"\xc3\x28",
    b"{",
    b"}",
    b"[",
    b"]",
    b"=",
    b"[model]",
    b"[training]",
    b"num-steps",
    b"batch-size",
    b"-1",
    b"0",
    b"1",
    b"0.0",
    b"{ mix = 2.0 }",
    b"(3,)",
    b"(0, 3)",
    b"()",
    b"'<f8'",
    b"'>f4'",
    b"'|b1'",
    b"'<i8'",
    b"'|O'",
    b"True",
    b"False",
    b"'shape'",
    b"'descr'",
    b"PAR1",
    b"\x93NUMPY",
];

/// One to a few changes to one of the inputs.
pub fn mutated(rng: &mut impl Rng, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = pick(rng, inputs).clone();
    let longest = LONGEST.max(bytes.len());
    for _ in 0..1 << rng.random_range(0..4) {
        change(rng, &mut bytes, inputs);
    }
    bytes.truncate(longest);
    bytes
}

fn pick<'a, T>(rng: &mut impl Rng, from: &'a [T]) -> &'a T {
    &from[rng.random_range(0..from.len())]
}

fn word(rng: &mut impl Rng) -> &'static [u8] {
    WORDS[rng.random_range(0..WORDS.len())]
}

fn change(rng: &mut impl Rng, bytes: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    let length = bytes.len();
    if length == 0 {
        return bytes.extend_from_slice(word(rng));
    }
    let at = rng.random_range(0..length);
    let end = at + rng.random_range(1..=(length - at).min(64));
    match rng.random_range(0..12) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = rng.random(),
        2 => bytes[at] = *pick(rng, &[0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'-', b'.', b'e']),
        3 => bytes[at] = bytes[at].wrapping_add(*pick(rng, &[1, 255, 16, 240])),
        4 => bytes.truncate(at),
        5 => {
            bytes.drain(at..end);
        }
        6 => {
            let piece = bytes[at..end].to_vec();
            insert(bytes, at, &piece);
        }
        7 => insert(bytes, at, word(rng)),
        8 => {
            bytes.splice(at..end, word(rng).iter().copied());
        }
        9 => {
            let other = pick(rng, inputs);
            let from = rng.random_range(0..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        10 => number(rng, bytes, at),
        _ => {
            // A number of four or eight bytes, as lengths and offsets are.
            let width = if rng.random() { 4 } else { 8 };
            let value = *pick(
                rng,
                &[0u64, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, u64::MAX, 255],
            );
            for (place, byte) in bytes[at..].iter_mut().zip(&value.to_le_bytes()[..width]) {
                *place = *byte;
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Another number in the place of the digits at or after a position.
fn number(rng: &mut impl Rng, bytes: &mut Vec<u8>, at: usize) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else { return };
    let start = at + start;
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let new = match rng.random_range(0..4) {
        0 => rng.random_range(0..20u64).to_string(),
        1 => rng.random::<u64>().to_string(),
        2 => (1u128 << rng.random_range(0..80)).to_string(),
        _ => format!("{:e}", f64::from_bits(rng.random())),
    };
    bytes.splice(start..start + digits, new.into_bytes());
}
