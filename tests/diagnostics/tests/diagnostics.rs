//! Compiler errors for authors of servers: each names the problem and the solution.

/// Each program in `tests/ui` fails to compile with the recorded errors. The test runs with one toolchain only, because
/// compiler versions differ in their wording.
#[test]
fn compile_errors_name_the_remedy() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
