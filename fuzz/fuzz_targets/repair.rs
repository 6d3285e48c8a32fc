//! Fuzzes `mcp_exact_tests_fuzz::repair`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_exact_tests_fuzz::repair(bytes));
