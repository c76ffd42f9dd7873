use proptest::prelude::*;

use super::*;

const MODELS: &str = r#"{"data": [
    {"id": "a/one", "price": 1.5, "tags": ["x", "y"]},
    {"id": "b/two", "price": 0.5, "tags": ["y"]},
    {"id": "c/three", "price": 9, "tags": []}
], "total": 3}"#;

fn selected(text: &str, expression: &str) -> String {
    let limits = QuerySettings { result_chars: 200, ..QuerySettings::default() };
    select(text, expression, &limits).unwrap_or_else(|error| error.to_string())
}

#[test]
fn expressions_select_values() {
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
    // Several values count as an array.
    assert_eq!(selected("{\"a\":1}\n\n{\"a\":2}", "[*].a"), "[1,2]");
}

#[test]
fn empty_selection_and_errors_are_explained() {
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

/// Each mistake is explained, with an expression that works where there is one.
#[test]
fn common_mistakes_are_explained() {
    const MISTAKES: [&str; 50] = [
        "data[?price < 2].id",
        "data[?price<2.5].id",
        "data[?price == -1 && price > 3]",
        "data[?tags == null]",
        "data[?free == true].id",
        "data[?id == \"a/one\"].price",
        "data[?contains(id, \"one\")].price",
        "data[?starts_with(id, 1)]",
        "data[?price = `2`]",
        "data[?price < `2` and id != 'x']",
        "data[?price < `2` OR (price > `8`)]",
        "data[?not price]",
        "$.data[0].id",
        "$",
        ".data[0]",
        "$..id",
        "data[*].content-type",
        "@type",
        "data.0.id",
        "data[0-2]",
        "data.length",
        "data.length()",
        "length(data).size",
        "len(data)",
        "count(data[?price > `1`])",
        "sort_by(data, price)[0]",
        "max_by(data, price).id",
        "map(id, data)",
        "data[*].{id, price}",
        "data[*].{'id': id}",
        "data[] | select(.price < 2)",
        "data.filter(d => d.price < 2)",
        "data[?price < '2']",
        "data[0]['id']",
        "data[0][\"id\"]",
        "length(data) / 2",
        "data[0].price*2",
        "data[*].price / `2`",
        "SELECT * FROM data",
        "select id from data where price = 2",
        "id like 'a%'",
        "data[?id LIKE '%one%'].price",
        "data[*].content/type",
        "data[?'a' == 'b * 2'].id / x",
        "data[",
        "data[?price < `2`",
        "lower(total)",
        "sum(data)",
        "'it is > 2' > 2 || `{\"a\": \"x == 1\"}`",
        "",
    ];
    let explain = |expression: &str| {
        let explained = selected(MODELS, expression);
        if let Some((_, corrected)) = explained.split_once(" Try: ") {
            assert!(jmespath::compile(corrected).is_ok(), "{expression}: {explained}");
        }
        format!("> {expression}\n{explained}")
    };
    insta::assert_snapshot!(MISTAKES.map(explain).join("\n"));
}

/// A text is never equal to a number, without an error.
#[test]
fn comparisons_of_other_types_are_explained() {
    const ROWS: &str =
        r#"{"rows": [{"id": 5, "code": "7", "of": {"no": 1}}, {"id": 6, "code": "8", "of": {"no": 2}}]}"#;
    #[track_caller]
    fn check(expression: &str, expected: &str) {
        assert_eq!(selected(ROWS, expression), expected, "{expression}");
    }
    const TEXT: &str = "This compares a text with numbers, which are never equal. Try: ";
    const NUMBER: &str = "This compares a number with texts, which are never equal. Try: ";
    check("rows[?id=='5']", &format!("[]\n\n{TEXT}rows[?id==`5`]"));
    check("rows[?id == '99']", &format!("[]\n\n{TEXT}rows[?id == `99`]"));
    check("rows[?of.no=='1'].id", &format!("[]\n\n{TEXT}rows[?of.no==`1`].id"));
    check("rows[?\"id\"=='5']", &format!("[]\n\n{TEXT}rows[?\"id\"==`5`]"));
    check("length(rows[?id=='5'])", &format!("0\n\n{TEXT}length(rows[?id==`5`])"));
    check("rows[*].id | [?@=='5']", &format!("[]\n\n{TEXT}rows[*].id | [?@==`5`]"));
    check("rows[?code==`7`].id", &format!("[]\n\n{NUMBER}rows[?code=='7'].id"));
    // Nothing is wrong with these.
    check("rows[?id==`99`]", "[]");
    check("rows[?code=='99']", "[]");
    check("rows[?name=='5']", "[]");
    check("rows[?code=='id==`7`']", "[]");
    check("length(rows[?code=='9'])", "0");
    check("rows[?code=='7'].id", "[5]");
}

#[test]
fn costly_expression_is_refused_before_it_runs() {
    #[track_caller]
    fn check(text: &str, expression: &str) {
        assert_eq!(
            select(text, expression, &QuerySettings::default()),
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
    let limits = QuerySettings { input_values: 10, ..QuerySettings::default() };
    assert_eq!(select(MODELS, "@", &limits), Err(QueryError::ManyValues(10)));
    let limits = QuerySettings { input_bytes: 10, ..QuerySettings::default() };
    assert_eq!(select(MODELS, "@", &limits), Err(QueryError::LargeValue { bytes: MODELS.len(), limit: 10 }));
    for long in ["a".repeat(MAX_EXPRESSION_LENGTH + 1), "(".repeat(MAX_NESTED + 1)] {
        assert_eq!(select(MODELS, &long, &QuerySettings::default()), Err(QueryError::LongExpression));
    }
}

/// The limits permit typical queries of large results.
#[test]
fn typical_queries_of_large_results_are_accepted() {
    let record = r#"{"id":"vendor/model-name","name":"A model","context_length":131072,"pricing":{"prompt":"0.0000001","completion":"0.0000004"},"description":"Some hundred characters of text that say what the model is good for, how it was made, and by whom it was made."}"#;
    let text = format!(r#"{{"data":[{}]}}"#, vec![record; 12_000].join(","));
    let expressions = [
        "data[?context_length > `200000`].id",
        "data[?contains(id, 'nobody')].{id: id, name: name, price: pricing.prompt, context: context_length}",
        "sort_by(data, &context_length)[-5:].{id: id, length: context_length, about: description}",
        "length(data)",
        "data[0:10].[id, name, pricing.prompt, pricing.completion, context_length]",
    ];
    for expression in expressions {
        let selected = select(&text, expression, &QuerySettings::default());
        assert!(selected.is_ok(), "{expression}: {selected:?} in {} bytes", text.len());
    }
}

/// Parsing, running and dropping an expression recurse as deep as it is nested.
#[test]
fn deeply_nested_expressions_do_not_overflow_the_stack() {
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
        // Up to the limit of nesting, and up to the limit of length.
        for times in [MAX_NESTED / 2, MAX_NESTED, MAX_EXPRESSION_LENGTH / unit.len()] {
            for behind in ["", "@", "a"] {
                let mut deep = unit.repeat(times);
                deep.truncate(MAX_EXPRESSION_LENGTH - behind.len());
                let _any = select(MODELS, &(deep + behind), &QuerySettings::default());
            }
        }
    }
    for (open, close) in
        [("(", ")"), ("[", "]"), ("!", ""), ("[*].", ""), ("{a:", "}"), ("not_null(", ")"), ("[?", "]")]
    {
        let times = MAX_NESTED / open.bytes().filter(|byte| NESTS.contains(byte)).count();
        let times = times.min(MAX_EXPRESSION_LENGTH / (open.len() + close.len() + 1));
        let balanced = format!("{}@{}", open.repeat(times), close.repeat(times));
        let selected = select("[[1]]", &balanced, &QuerySettings::default());
        assert_ne!(selected, Err(QueryError::LongExpression), "{balanced}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(select(&deep, "@", &QuerySettings::default()), Err(QueryError::NotJson(_))));
}

#[test]
fn parts_inside_strings_are_not_counted() {
    let check = |text: &str, expected| assert_eq!(parts(text), expected, "{text}");
    check("1", 1);
    check("[1,2]", 3);
    check(r#"{"a":1,"b":[{}]}"#, 7);
    check(r#"["a,b:[{\",{","\\"]"#, 3);
    check(r#""never closed, [ \"#, 1);
}

proptest! {
    #[test]
    fn part_count_is_an_upper_bound(value in proptest::collection::vec("[a,:{\"\\\\\\[é]{0,9}", 0..20), deep in 0_usize..9) {
        let object: serde_json::Map<_, _> = value.iter().map(|name| (name.clone(), value.clone().into())).collect();
        let text = format!("{}{}{}", "[".repeat(deep), serde_json::Value::from(object), "]".repeat(deep));
        prop_assert!(parts(&text) >= nodes(&parse(&text).expect("JSON")));
    }

    #[test]
    fn arbitrary_expressions_neither_panic_nor_exceed_the_limit(expression in r#"([a-c@*.,|&!()\[\]{}?:<>='"`0-9 -]|data|price|length\(|sort_by\(|\[\*\]|\[\]|to_string\(|@\)){0,30}"#) {
        let limits = QuerySettings { result_chars: 100, values: 100_000, ..QuerySettings::default() };
        if let Ok(selected) = select(MODELS, &expression, &limits) {
            prop_assert!(selected.chars().count() <= 100 + 400);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn query_times_out_and_returns_its_permit() {
    let queries = QueryRunner::new(QuerySettings { concurrent: 1, ..QuerySettings::default() });
    let permit = queries.runner.permits.clone().acquire_owned().await.expect("a permit");
    assert_eq!(queries.run("1".into(), "@".into()).await, Err(QueryError::TooSlow));
    drop(permit);
    tokio::time::resume();
    assert_eq!(queries.run("1".into(), "@".into()).await.as_deref(), Ok("1"));
}
