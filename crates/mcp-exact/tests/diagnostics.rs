//! Errors that the compiler shows to authors of servers: each names the problem and the remedy.
#![cfg(feature = "macros")]

/// The texts hold for one toolchain: other versions of the compiler word their own part of them in other ways.
#[test]
fn compile_errors_name_the_remedy() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
