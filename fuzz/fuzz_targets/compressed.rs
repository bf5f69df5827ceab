#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| zhat_fuzz::run("compressed", input));
