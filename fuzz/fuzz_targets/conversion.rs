//! Fuzzes `mcp_exact_tests_fuzz::conversion`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_exact_tests_fuzz::conversion(bytes));
