//! What goes through a handler that returns its event comes back as it was, within what the language's numbers can be.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Number, Value};
use toolyard_functions::code::Language;

use crate::setup::{answer, code, run, runtimes};

/// Values, with the integers that a language has.
fn values(integers: std::ops::RangeInclusive<i64>) -> impl Strategy<Value = Value> {
    let fraction = prop_oneof![any::<f64>(), -1e6..1e6].prop_filter_map("no JSON, or an integer", |number| {
        // An integral number has another spelling in each language.
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
        // JavaScript puts names that are numbers first, and has a member `__proto__` of its own.
        let name = "[^0-9_].{0,8}";
        let object = proptest::collection::vec((name, inner.clone()), 0..6);
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::Array),
            object.prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

async fn check(language: Language, source: &str, integers: std::ops::RangeInclusive<i64>) {
    let (runtimes, code) = (runtimes().await, Arc::new(code(language, source)));
    let mut runner = TestRunner::deterministic();
    let values = values(integers);
    for _ in 0..300 {
        // A handler in Lua that returns nothing but nil has no answer, so that each value has something around it.
        let value = Value::Array(vec![values.new_tree(&mut runner).unwrap().current()]);
        let came = answer(run(&runtimes, &code, &value.to_string()).await);
        assert_eq!(serde_json::from_str::<Value>(&came).unwrap(), value, "{came}");
    }
}

#[tokio::test]
async fn through_python() {
    check(Language::Python, "def cortexone_handler(event, context): return event", i64::MIN..=i64::MAX).await;
}

#[tokio::test]
async fn through_javascript() {
    // The integers that JavaScript can tell from their neighbours: others lose digits, which is its number.
    let exact = -(1 << 53)..=1 << 53;
    check(Language::JavaScript, "function cortexone_handler(event) { return event }", exact).await;
}

#[tokio::test]
async fn through_lua() {
    check(Language::Lua, "function cortexone_handler(event) return event end", i64::MIN..=i64::MAX).await;
}

#[tokio::test]
async fn a_string_stays_a_string_and_null_stays_null() {
    let runtimes = runtimes().await;
    let sources = [
        "def cortexone_handler(event, context): return [event]",
        "function cortexone_handler(event) { return [event] }",
        "function cortexone_handler(event) return { event } end",
    ];
    for (language, source) in Language::ALL.into_iter().zip(sources) {
        let code = Arc::new(code(language, source));
        for event in
            [r#""{\"a\":1}""#, "null", r#"{"id":null}"#, "[]", "{}", "[[],{}]", "-0", "12345678901234567"]
        {
            let came = answer(run(&runtimes, &code, event).await);
            let expected = match (language, event) {
                // The nearest number that there is.
                (Language::JavaScript, "12345678901234567") => "12345678901234568",
                (Language::JavaScript | Language::Python, "-0") => "0",
                (Language::Lua, "-0") => "-0.0",
                _ => event,
            };
            assert_eq!(came, format!("[{expected}]"), "{language:?}");
        }
    }
}
