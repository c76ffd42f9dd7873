//! Compiler errors for common mistakes. `TRYBUILD=overwrite` updates the expected output.

#[test]
fn compiler_errors_explain_mistakes() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
