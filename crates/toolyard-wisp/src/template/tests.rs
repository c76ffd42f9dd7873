use serde_json::json;

use super::*;

/// Steps `a` with an object and `b` with a text.
struct Steps;

impl ReferenceValues for Steps {
    fn value(&self, reference: &StepReference) -> Result<Value, StepFailure> {
        match (&*reference.step, &reference.part) {
            ("a", StepPart::Result(path)) if path.is_empty() => Ok(json!(r#"{"n": 3}"#)),
            ("a", StepPart::Result(path)) if path == &["n"] => Ok(json!(3)),
            ("a", StepPart::Result(path)) if path == &["list", "0"] => Ok(json!({"x": [true]})),
            ("b", StepPart::Result(path)) if path.is_empty() => Ok(json!("say {{steps.a.result}}")),
            ("b", StepPart::OutputTo) => Ok(json!("out/b.txt")),
            _ => Err(StepFailure::data("missing")),
        }
    }
}

#[test]
fn references_are_filled() {
    #[track_caller]
    fn check(template: Value, expected: Value) {
        let members = Map::from_iter([("p".to_owned(), template)]);
        let filled = filled_members(&members, &Steps).expect("values");
        assert_eq!(filled["p"], expected);
    }
    check(json!("{{steps.a.result}}"), json!(r#"{"n": 3}"#));
    check(json!("{{ steps.a.result.n }}"), json!(3));
    check(json!("n={{steps.a.result.n}}!"), json!("n=3!"));
    check(json!("{{steps.a.result.list.0}}"), json!({"x": [true]}));
    check(json!("x: {{steps.a.result.list.0}}"), json!(r#"x: {"x":[true]}"#));
    check(json!("{{steps.b.output_to}}"), json!("out/b.txt"));
    check(json!("{{{steps.a.result.n}}}"), json!("{3}"));
    check(
        json!(["{{steps.a.result.n}}", {"k": "{{steps.b.output_to}}"}, 1, null, true]),
        json!([3, {"k": "out/b.txt"}, 1, null, true]),
    );
    // Values are filled once.
    check(json!("{{steps.b.result}}"), json!("say {{steps.a.result}}"));
    check(json!("> {{steps.b.result}}"), json!("> say {{steps.a.result}}"));
}

#[test]
fn other_braces_stay() {
    for text in ["", "{", "{{", "}}", "{{x}}", "f'{{x}}'", "{{ other.a }}", "{% if %}", "{{steps}}", "é{{"] {
        assert_eq!(filled_text(text, &Steps), Ok(text.to_owned()), "{text:?}");
    }
}

#[test]
fn invalid_reference_is_refused() {
    for text in [
        "{{steps.}}",
        "{{steps.a}}",
        "{{steps.a.other}}",
        "{{steps.a.output_to.x}}",
        "{{steps.a.result.}}",
        "{{steps..result}}",
        "{{steps.a.result",
        "{{steps.a.result}",
    ] {
        let error = pieces(text).expect_err(text);
        assert_eq!(error.to_string(), format!("`{text}` is not a reference to a step"));
    }
}

#[test]
fn missing_value_is_a_failure() {
    assert_eq!(filled_text("{{steps.c.result}}", &Steps), Err(StepFailure::data("missing")));
}
