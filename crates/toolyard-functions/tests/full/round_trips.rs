//! Events returned by a handler are unchanged, within the numeric range of the language.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Number, Value};
use toolyard_functions::code::SourceLanguage;

use crate::setup::{answer, code, run, runtimes};

/// JSON values with the integers of a language.
fn values(integers: std::ops::RangeInclusive<i64>) -> impl Strategy<Value = Value> {
    let fraction = prop_oneof![any::<f64>(), -1e6..1e6].prop_filter_map("no JSON, or an integer", |number| {
        // The notation of integral floats differs between languages.
        (number.fract() != 0.0).then(|| Number::from_f64(number)).flatten().map(Value::Number)
    });
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        integers.prop_map(Value::from),
        fraction,
        ".{0,20}".prop_map(Value::String),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        // JavaScript sorts numeric names first and treats `__proto__` specially.
        let name = "[^0-9_].{0,8}";
        let object = proptest::collection::vec((name, inner.clone()), 0..6);
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::Array),
            object.prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

async fn check(language: SourceLanguage, source: &str, integers: std::ops::RangeInclusive<i64>) {
    let (runtimes, code) = (runtimes().await, Arc::new(code(language, source)));
    let mut runner = TestRunner::deterministic();
    let values = values(integers);
    for _ in 0..300 {
        // Wrapped in an object, because a Lua handler that returns nil has no answer.
        let value = Value::Array(vec![values.new_tree(&mut runner).unwrap().current()]);
        let returned = answer(run(&runtimes, &code, &value.to_string()).await);
        assert_eq!(serde_json::from_str::<Value>(&returned).unwrap(), value, "{returned}");
    }
}

#[tokio::test]
async fn python_returns_values_unchanged() {
    check(SourceLanguage::Python, "def cortexone_handler(event, context): return event", i64::MIN..=i64::MAX)
        .await;
}

#[tokio::test]
async fn javascript_returns_values_unchanged() {
    // The safe integers of JavaScript: larger ones lose digits.
    let exact = -(1 << 53)..=1 << 53;
    check(SourceLanguage::JavaScript, "function cortexone_handler(event) { return event }", exact).await;
}

#[tokio::test]
async fn lua_returns_values_unchanged() {
    check(SourceLanguage::Lua, "function cortexone_handler(event) return event end", i64::MIN..=i64::MAX)
        .await;
}

#[tokio::test]
async fn strings_and_null_are_preserved() {
    let runtimes = runtimes().await;
    let sources = [
        "def cortexone_handler(event, context): return [event]",
        "function cortexone_handler(event) { return [event] }",
        "function cortexone_handler(event) return { event } end",
    ];
    for (language, source) in SourceLanguage::ALL.into_iter().zip(sources) {
        let code = Arc::new(code(language, source));
        for event in
            [r#""{\"a\":1}""#, "null", r#"{"id":null}"#, "[]", "{}", "[[],{}]", "-0", "12345678901234567"]
        {
            let returned = answer(run(&runtimes, &code, event).await);
            let expected = match (language, event) {
                // The nearest representable number.
                (SourceLanguage::JavaScript, "12345678901234567") => "12345678901234568",
                (SourceLanguage::JavaScript | SourceLanguage::Python, "-0") => "0",
                (SourceLanguage::Lua, "-0") => "-0.0",
                _ => event,
            };
            assert_eq!(returned, format!("[{expected}]"), "{language:?}");
        }
    }
}
