//! Results of every form stay within their bound.

use super::*;

const BOUND: usize = 8_000;

/// Returns a harness with a bound of 8,000 characters.
fn bounded(result: Value) -> LargeResultHarness {
    bounded_memory(result, MemorySettings::default())
}

fn bounded_memory(result: Value, limits: MemorySettings) -> LargeResultHarness {
    let options = ResultSettings { threshold: BOUND, least_chunk: 5_000, ..ResultSettings::default() };
    LargeResultHarness::new(result, options, limits)
}

fn chars(value: &Value) -> usize {
    value.to_string().chars().count()
}

fn session() -> Value {
    json!({"toolyard/session": "abc123"})
}

#[tokio::test]
async fn result_of_any_form_is_bounded() {
    let long = "x".repeat(30_000);
    let media = |kind: &str, mime: &str| json!({"type": kind, "data": long, "mimeType": mime});
    let blob = |mime: &str| json!({"type": "resource", "resource": {"uri": "file:///a", "blob": long, "mimeType": mime}});
    let cases = [
        ("a resource whose bytes are a text", json!({"content": [blob("text/plain")]})),
        ("a resource of unknown bytes", json!({"content": [blob("application/octet-stream")]})),
        ("an image that is a text", json!({"content": [media("image", "text/plain")]})),
        ("a sound that is a text", json!({"content": [media("audio", "text/plain")]})),
        (
            "an image with a long type",
            json!({"content": [{"type": "image", "data": "AAAA", "mimeType": format!("image/{long}")}]}),
        ),
        (
            "an image with a long note",
            json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": {"lastModified": long}}]}),
        ),
        ("6,000 empty texts", json!({"content": vec![text(""); 6_000]})),
        ("6,000 texts of a letter", json!({"content": vec![text("a"); 6_000]})),
        ("2,500 texts of a letter", json!({"content": vec![text("a"); 2_500]})),
        (
            "a long annotation",
            json!({"content": [{"type": "text", "text": "a", "annotations": {"lastModified": long}}]}),
        ),
        (
            "a long `_meta` of a text",
            json!({"content": [{"type": "text", "text": "a", "_meta": {"a": long}}]}),
        ),
        ("a long `_meta`", json!({"content": [text("a")], "_meta": {"a": long}})),
        ("an unknown member", json!({"content": [text("a")], "more": long})),
        ("content that is no array", json!({"content": long})),
        (
            "a message and data of an error",
            json!({"jsonRpcError": {"code": -32000, "message": long, "data": {"a": long}}}),
        ),
        (
            "data of an error",
            json!({"jsonRpcError": {"code": -32000, "message": "failed", "data": {"a": long}}}),
        ),
        (
            "a member of an error",
            json!({"jsonRpcError": {"code": -32000, "message": "failed", "more": long}}),
        ),
    ];
    for (case, result) in cases {
        for tool in ["list_models", "typed"] {
            let harness = bounded(result.clone());
            let mut call = Call { client: Arc::new(ModelClient), ..Call::tool(tool, Json::null()) };
            call.meta = harness.meta(&session()).await;
            let length = match harness.gateway.invoke(call).await {
                Ok(Outcome::Done(output)) => chars(&output.body.to_json().to_value()),
                Ok(other) => panic!("{other:?}"),
                Err(error) => {
                    error.message().chars().count() + error.peer().map_or(0, |peer| chars(&peer.to_value()))
                }
            };
            assert!(length <= BOUND + 1_000, "{case} of {tool}: {length}");
        }
    }
}

#[tokio::test]
async fn media_for_a_model_stay() {
    let long = "x".repeat(30_000);
    for block in [
        json!({"type": "image", "data": long, "mimeType": "image/png"}),
        json!({"type": "audio", "data": long, "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"uri": "file:///a", "blob": long, "mimeType": "Image/JPEG"}}),
    ] {
        let result = json!({"content": [text("one"), block, text("two")]});
        assert_eq!(bounded(result.clone()).result("list_models").await, result);
    }
}

#[tokio::test]
async fn small_texts_are_joined_without_loss() {
    let blocks: Vec<_> = (0..400).map(|n| text(&format!("line {n}"))).collect();
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let content: Vec<_> = std::iter::once(image.clone()).chain(blocks).collect();
    let result = bounded(json!({"content": content})).result("list_models").await;
    let lines: Vec<_> = (0..400).map(|n| format!("line {n}")).collect();
    assert_eq!(result, json!({"content": [image, text(&lines.join("\n"))]}));
}

#[tokio::test]
async fn error_of_a_server_is_cut_with_a_notice() {
    let error = async |error: Value| {
        let harness = bounded(json!({"jsonRpcError": error}));
        let call = Call { client: Arc::new(ModelClient), ..Call::tool("list_models", Json::null()) };
        let Err(error) = harness.gateway.invoke(call).await else { panic!("no error") };
        error.peer().expect("an error of a server").to_value()
    };
    let short = json!({"code": -32000, "message": "failed", "data": {"a": "b".repeat(7_000)}});
    assert_eq!(error(short.clone()).await, short);
    let long = error(json!({"code": -32001, "message": "m".repeat(9_000), "data": {"a": 1}})).await;
    let notice = "\n[error message truncated — 7000 chars omitted]";
    assert_eq!(
        long,
        json!({"code": -32001, "message": format!("{}{notice}", "m".repeat(2_000)), "data": {"a": 1}})
    );
    let data = error(json!({"code": -32001, "message": "failed", "data": "b".repeat(9_000)})).await;
    assert_eq!(data, json!({"code": -32001, "message": "failed\n[error data omitted — 9002 chars]"}));
}

/// Hosts that show a model texts only need the text; programs follow the reference.
#[tokio::test]
async fn text_that_fits_alone_stays() {
    let rows: Vec<_> =
        (0..60).map(|n| json!({"id": n, "name": format!("row {n}"), "tags": ["a", "b"]})).collect();
    let records = json!({"rows": rows});
    let pretty = serde_json::to_string_pretty(&records).expect("JSON");
    assert!(
        (5_000..7_000).contains(&pretty.len()) && pretty.len() + chars(&records) > BOUND,
        "{}",
        pretty.len()
    );
    let result = json!({"content": [text(&pretty)], "structuredContent": records});
    let typed = bounded(result.clone()).result("typed").await;
    assert_eq!(typed["content"], result["content"]);
    assert_eq!(typed["structuredContent"]["storedResult"]["chunks"], 1, "{typed}");
    let untyped = bounded(result.clone()).result("list_models").await;
    assert_eq!(untyped, json!({"content": result["content"]}));
    let log = "a line of a log\n".repeat(300);
    let result = json!({"content": [text(&log)], "structuredContent": {"result": log}});
    let typed = bounded(result.clone()).result("typed").await;
    assert_eq!(typed["content"], result["content"]);
    assert!(chars(&typed) <= BOUND, "{typed}");
}

/// The handler keeps its schemas, not its texts.
#[tokio::test]
async fn kept_structure_does_not_keep_long_texts() {
    let records = json!({"rows": vec!["words"; 2_000]});
    let result = json!({"content": [text(&records.to_string())], "structuredContent": records});
    let result = bounded(result).result("kept").await;
    assert_eq!(result["structuredContent"], records);
    let text_block = result["content"][0]["text"].as_str().expect("a text");
    assert!(
        text_block.starts_with("Tool result for 'kept' is large") && text_block.len() < 2_000,
        "{text_block}"
    );
    let short = json!({"content": [text("2,000 rows")], "structuredContent": records});
    assert_eq!(bounded(short.clone()).result("kept").await, short);
}

#[tokio::test]
async fn truncated_result_is_within_its_bound() {
    let limits = MemorySettings { entries: 1, ..MemorySettings::default() };
    let long = "x".repeat(30_000);
    for (tool, result) in [
        ("list_models", json!({"content": [text(&long)]})),
        ("typed", json!({"content": [text(&long)], "structuredContent": {"result": long}})),
    ] {
        let cut = bounded_memory(result, limits).result(tool).await;
        let text_block = cut["content"][0]["text"].as_str().expect("a text").to_owned();
        assert!(text_block.contains("[result truncated — "), "{text_block}");
        let structure = cut.get("structuredContent").map_or(0, chars);
        assert!(
            text_block.chars().count() + structure <= BOUND,
            "{tool}: {} {structure}",
            text_block.chars().count()
        );
    }
}

/// The compact JSON of the structured content fits, although the text does not.
#[tokio::test]
async fn notice_does_not_report_zero_omitted_characters() {
    let limits = MemorySettings { entries: 1, ..MemorySettings::default() };
    let rows: Vec<_> =
        (0..75).map(|n| json!({"id": n, "name": format!("row {n}"), "tags": ["a", "b"]})).collect();
    let records = json!({"rows": rows});
    let pretty = format!("{}{}", serde_json::to_string_pretty(&records).expect("JSON"), " ".repeat(4_000));
    let result = json!({"content": [text(&pretty)], "structuredContent": records});
    let cut = bounded_memory(result, limits).result("typed").await.to_string();
    assert!(!cut.contains(" 0 chars omitted"), "{cut}");
}

#[tokio::test]
async fn message_is_within_a_low_bound() {
    let members: String = (0..60).map(|n| format!("\"a long name of a member {n}\": {n}, ")).collect();
    let json = format!("{{{members}\"rows\": [{}0]}}", "0, ".repeat(3_000));
    let structured: Value = serde_json::from_str(&json).expect("JSON");
    let result = json!({"content": [text(&json)], "structuredContent": structured});
    let options = ResultSettings { threshold: 2_000, least_chunk: 5_000, ..ResultSettings::default() };
    for tool in ["list_models", "typed"] {
        let harness = LargeResultHarness::new(result.clone(), options.clone(), MemorySettings::default());
        let cut = harness.call(tool, json!({}), json!({})).await;
        let text_block = cut["content"][0]["text"].as_str().expect("a text").chars().count();
        let structure = cut.get("structuredContent").map_or(0, chars);
        assert!(text_block + structure <= 2_000, "{tool}: {text_block} {structure} {cut}");
    }
}

/// The tools of working memory store nothing, and have the same bound.
#[tokio::test]
async fn results_of_working_memory_are_bounded() {
    let options = ResultSettings { threshold: 3_000, least_chunk: 5_000, ..ResultSettings::default() };
    let harness = LargeResultHarness::new(json!({"content": []}), options, MemorySettings::default());
    let call = async |tool: &str, arguments: Value| {
        let result = harness.call(tool, arguments, session()).await;
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    let rows = json!({"rows": (0..3_000).map(|n| json!({"id": n, "name": "a name"})).collect::<Vec<_>>()});
    call(tools::SAVE, json!({"key": "rows", "data": rows})).await;
    call(tools::SAVE, json!({"key": "chunk", "data": "x".repeat(5_000)})).await;
    call(tools::SAVE, json!({"key": "lines", "data": "a line of a log\n".repeat(1_000)})).await;
    assert_eq!(call(tools::GET, json!({"key": "chunk"})).await.len(), 5_000);
    let whole = call(tools::GET, json!({"key": "rows"})).await;
    assert!(whole.chars().count() <= 5_000, "{}", whole.len());
    assert!(whole.contains("chars omitted]\n") && whole.contains("`lines`"), "{whole}");
    let long = "k".repeat(100_000);
    for (tool, arguments) in [
        (tools::GET, json!({"key": "rows", "lines": "1-"})),
        (tools::GET, json!({"key": "lines", "lines": "1-"})),
        (tools::GET, json!({"key": "lines", "grep": "log"})),
        (tools::QUERY, json!({"key": "rows", "expression": "rows"})),
        (tools::GET, json!({"key": long})),
        (tools::DELETE, json!({"key": long})),
        (tools::QUERY, json!({"key": long, "expression": "a"})),
        (tools::SEARCH, json!({"query": long})),
        (tools::LIST, json!({"namespace": long})),
    ] {
        let read = call(tool, arguments.clone()).await;
        assert!(read.chars().count() <= 3_000, "{tool} {:.80}: {}", arguments.to_string(), read.len());
    }
    let lines = call(tools::GET, json!({"key": "lines", "lines": "1-"})).await;
    assert!(!lines.contains("truncated") && lines.contains("continue with lines"), "{lines}");
    let query = call(tools::QUERY, json!({"key": "rows", "expression": "rows"})).await;
    assert!(query.starts_with("The result has more than 3000 characters"), "{query}");
}

#[tokio::test]
async fn lines_are_accepted_as_a_number() {
    let harness = bounded(json!({"content": []}));
    harness.call(tools::SAVE, json!({"key": "a", "data": "one\ntwo\nthree"}), session()).await;
    let read = harness.call(tools::GET, json!({"key": "a", "lines": 2}), session()).await;
    assert_eq!(read["content"][0]["text"], "Line 2 of 3:\ntwo");
}
