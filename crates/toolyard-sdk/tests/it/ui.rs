//! The usual mistakes, and what the compiler says of them. `TRYBUILD=overwrite` writes the files anew.

#[test]
fn mistakes_explain_themselves() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
