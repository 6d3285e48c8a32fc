//! Fuzzes `mcp_exact_tests_fuzz::reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_exact_tests_fuzz::reader(bytes));
