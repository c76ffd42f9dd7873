use proptest::prelude::*;

use super::*;

const MODELS: &str = r#"{"data": [
    {"id": "a/one", "price": 1.5, "tags": ["x", "y"]},
    {"id": "b/two", "price": 0.5, "tags": ["y"]},
    {"id": "c/three", "price": 9, "tags": []}
], "total": 3}"#;

fn selected(text: &str, expression: &str) -> String {
    let limits = QueryLimits { result_chars: 200, ..QueryLimits::default() };
    select(text, expression, &limits).unwrap_or_else(|error| error.to_string())
}

#[test]
fn what_expressions_select() {
    #[track_caller]
    fn check(expression: &str, expected: &str) {
        assert_eq!(selected(MODELS, expression), expected, "{expression}");
    }
    check("total", "3");
    check("data[*].id", r#"["a/one","b/two","c/three"]"#);
    check(
        "data[?price < `2`].{id: id, cost: price}",
        r#"[{"cost":1.5,"id":"a/one"},{"cost":0.5,"id":"b/two"}]"#,
    );
    check("length(data)", "3");
    check("sort_by(data, &price)[0].id", r#""b/two""#);
    check("join(', ', data[].tags[])", r#""x, y, y""#);
    check("max_by(data, &price).to_string(price)", r#""9""#);
    check("data[0:2].tags", r#"[["x","y"],["y"]]"#);
    // Several values are a list of them.
    assert_eq!(selected("{\"a\":1}\n\n{\"a\":2}", "[*].a"), "[1,2]");
}

#[test]
fn what_a_model_reads_where_nothing_is_selected_or_something_is_wrong() {
    let long = format!("[{}]", vec!["\"some words of a result\""; 20].join(","));
    let cases = [
        (MODELS, "models"),
        ("[{\"id\": 1}]", "id"),
        ("\"text\"", "id"),
        (MODELS, "data["),
        (MODELS, "length(total)"),
        (MODELS, "nonsense(@)"),
        ("# A heading", "@"),
        ("", "@"),
        (&long, "@"),
        (MODELS, "data | [@,@]|[]|[@,@]|[]|[@,@]|[]|[@,@]|[]|[@,@]|[]|[@,@]|[]|[@,@]|[]|[@,@]|[]|[@,@]|[]"),
    ];
    let read = cases.map(|(text, expression)| selected(text, expression));
    insta::assert_snapshot!(read.join("\n---\n"));
}

#[test]
fn what_would_come_to_too_much_is_refused_before_it_runs() {
    #[track_caller]
    fn check(text: &str, expression: &str) {
        assert_eq!(
            select(text, expression, &QueryLimits::default()),
            Err(QueryError::Costly),
            "{expression}"
        );
    }
    check(MODELS, "[@,@][]".repeat(15).as_str());
    check(MODELS, &format!("@{}", "|{a:@,b:@}.*".repeat(12)));
    check(MODELS, "join(data[0].id, data[*].id)");
    check(
        &format!("{:?}", "\"".repeat(2_000_000)),
        "to_string(to_string(to_string(to_string(to_string(@)))))",
    );
    check(&format!("[{}]", ["1"; 100_000].join(",")), "[*].[@,@,@,@,@,@,@,@,@,@][].[@,@,@,@,@,@,@,@,@,@][]");
    let limits = QueryLimits { input_values: 10, ..QueryLimits::default() };
    assert_eq!(select(MODELS, "@", &limits), Err(QueryError::ManyValues(10)));
    let limits = QueryLimits { input_bytes: 10, ..QueryLimits::default() };
    assert_eq!(select(MODELS, "@", &limits), Err(QueryError::LargeValue { bytes: MODELS.len(), limit: 10 }));
    for long in ["a".repeat(LONGEST_EXPRESSION + 1), "(".repeat(MOST_NESTED + 1)] {
        assert_eq!(select(MODELS, &long, &QueryLimits::default()), Err(QueryError::LongExpression));
    }
}

/// Records of common size may be picked from as models do it.
#[test]
fn what_models_ask_of_large_results_is_not_refused() {
    let record = r#"{"id":"vendor/model-name","name":"A model","context_length":131072,"pricing":{"prompt":"0.0000001","completion":"0.0000004"},"description":"Some hundred characters of text that say what the model is good for, how it was made, and by whom it was made."}"#;
    let text = format!(r#"{{"data":[{}]}}"#, vec![record; 12_000].join(","));
    let asked = [
        "data[?context_length > `200000`].id",
        "data[?contains(id, 'nobody')].{id: id, name: name, price: pricing.prompt, context: context_length}",
        "sort_by(data, &context_length)[-5:].{id: id, length: context_length, about: description}",
        "length(data)",
        "data[0:10].[id, name, pricing.prompt, pricing.completion, context_length]",
    ];
    for expression in asked {
        let selected = select(&text, expression, &QueryLimits::default());
        assert!(selected.is_ok(), "{expression}: {selected:?} in {} bytes", text.len());
    }
}

/// Who reads expressions, who runs them, and who drops them goes as deep as they are.
#[test]
fn deep_expressions_end_well() {
    const UNITS: [&str; 18] = [
        "(",
        "[",
        "{a:",
        "!",
        "&",
        "a.",
        "[*]",
        "[]",
        "a||",
        "@|",
        "[?a",
        "*.",
        "not_null(",
        "a[?",
        "`1`==",
        "{a:{",
        "map(&",
        "a&&",
    ];
    for unit in UNITS {
        // As many as are let through, and as many as fit.
        for times in [MOST_NESTED / 2, MOST_NESTED, LONGEST_EXPRESSION / unit.len()] {
            for behind in ["", "@", "a"] {
                let mut deep = unit.repeat(times);
                deep.truncate(LONGEST_EXPRESSION - behind.len());
                let _any = select(MODELS, &(deep + behind), &QueryLimits::default());
            }
        }
    }
    for (open, close) in
        [("(", ")"), ("[", "]"), ("!", ""), ("[*].", ""), ("{a:", "}"), ("not_null(", ")"), ("[?", "]")]
    {
        let times = MOST_NESTED / open.bytes().filter(|byte| NESTS.contains(byte)).count();
        let times = times.min(LONGEST_EXPRESSION / (open.len() + close.len() + 1));
        let balanced = format!("{}@{}", open.repeat(times), close.repeat(times));
        let selected = select("[[1]]", &balanced, &QueryLimits::default());
        assert_ne!(selected, Err(QueryError::LongExpression), "{balanced}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(select(&deep, "@", &QueryLimits::default()), Err(QueryError::NotJson(_))));
}

#[test]
fn parts_are_counted_outside_of_strings() {
    let check = |text: &str, expected| assert_eq!(parts(text), expected, "{text}");
    check("1", 1);
    check("[1,2]", 3);
    check(r#"{"a":1,"b":[{}]}"#, 7);
    check(r#"["a,b:[{\",{","\\"]"#, 3);
    check(r#""never closed, [ \"#, 1);
}

proptest! {
    #[test]
    fn there_are_no_more_values_than_were_counted(value in proptest::collection::vec("[a,:{\"\\\\\\[é]{0,9}", 0..20), deep in 0_usize..9) {
        let object: serde_json::Map<_, _> = value.iter().map(|name| (name.clone(), value.clone().into())).collect();
        let text = format!("{}{}{}", "[".repeat(deep), serde_json::Value::from(object), "]".repeat(deep));
        prop_assert!(parts(&text) >= nodes(&parse(&text).expect("JSON")));
    }

    #[test]
    fn no_expression_panics_or_gives_too_much(expression in r#"([a-c@*.,|&!()\[\]{}?:<>='"`0-9 -]|data|price|length\(|sort_by\(|\[\*\]|\[\]|to_string\(|@\)){0,30}"#) {
        let limits = QueryLimits { result_chars: 100, values: 100_000, ..QueryLimits::default() };
        if let Ok(selected) = select(MODELS, &expression, &limits) {
            prop_assert!(selected.chars().count() <= 100 + 400);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_told_and_places_are_given_back() {
    let queries = Queries::new(QueryLimits { at_once: 1, ..QueryLimits::default() });
    let held = queries.places.clone().acquire_owned().await.expect("a place");
    assert_eq!(queries.run("1".into(), "@".into()).await, Err(QueryError::TooSlow));
    drop(held);
    tokio::time::resume();
    assert_eq!(queries.run("1".into(), "@".into()).await.as_deref(), Ok("1"));
}
