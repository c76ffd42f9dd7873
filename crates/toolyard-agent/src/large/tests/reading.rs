//! Steps of a model that reads a stored result.

use super::*;

/// Follows the steps of a model that gets the result of a server that lists models.
#[tokio::test]
async fn large_result_can_be_read_and_queried() {
    let models: Vec<_> = (0..3000)
        .map(|n| json!({"id": format!("vendor/model-{n}"), "context": n * 10, "about": "é".repeat(30)}))
        .collect();
    let whole = json!({"data": models}).to_string();
    let harness = LargeResultHarness::new(
        json!({"content": [text(&whole)]}),
        ResultSettings::default(),
        MemorySettings::default(),
    );
    let meta = json!({"toolyard/session": "abc123"});
    let answer = harness.call("list_models", json!({}), meta.clone()).await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    assert!(answer.chars().count() < 2000, "{answer}");
    let keys: Vec<_> = answer
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| line.split('`').nth(1))
        .collect();
    let mut joined = String::new();
    for key in &keys {
        // The chunk exceeds the threshold, but is not stored again.
        let chunk = harness.call(tools::GET, json!({"key": key}), meta.clone()).await;
        joined.push_str(chunk["content"][0]["text"].as_str().expect("a text"));
    }
    assert!(joined == whole, "{} chunks are not the result", keys.len());
    let base = keys::base_of(keys[0]).expect("a key of a result");
    for key in [keys[0], base, &keys::index_key(base), &keys::chunk_key(base, 1)] {
        let arguments = json!({"key": key, "expression": "data[?context > `29970`].id"});
        let selected = harness.call(tools::QUERY, arguments, meta.clone()).await;
        assert_eq!(selected["content"][0]["text"], r#"["vendor/model-2998","vendor/model-2999"]"#, "{key}");
    }
    let outline = harness.call(tools::GET, json!({"key": keys::index_key(base)}), meta.clone()).await;
    let outline = outline["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(keys.iter().all(|key| outline.contains(&format!("→ `{key}`"))), "{outline}");
    harness.call(tools::DELETE, json!({"key": keys[1]}), meta.clone()).await;
    let answer = harness.call(tools::QUERY, json!({"key": base, "expression": "@"}), meta.clone()).await;
    let answer = answer["content"][0]["text"].as_str().expect("a text").replace(base, "BASE");
    insta::assert_snapshot!(answer);
    harness.store.pass(std::time::Duration::from_secs(20 * 60));
    let gone = harness.call(tools::GET, json!({"key": keys[0]}), meta).await;
    assert!(gone["content"][0]["text"].as_str().expect("a text").ends_with("not found or has expired."));
}

/// Returns a log of about 500 kB, in which one request has failed.
fn log() -> String {
    let line = |n: usize| {
        match n {
        4_321 => "2026-11-23T10:17:42Z ERROR api-2 request r-004321 failed: upstream `billing` refused the connection (attempt 3 of 3)\n".to_owned(),
        n => format!("2026-11-23T10:{:02}:{:02}Z INFO api-{} request r-{n:06} GET /v1/orders/{} 200 in {} ms\n", n / 60 % 60, n % 60, n % 4, n * 37 % 9_973, n % 180),
    }
    };
    (0..6_100).map(line).collect()
}

/// Two calls find a line of a log: the call of the tool and a search.
#[tokio::test]
async fn line_of_a_log_is_found_in_two_calls_and_few_tokens() {
    let log = log();
    assert!((490_000..520_000).contains(&log.len()), "{}", log.len());
    let answer = json!({"content": [text(&log)]});
    let harness = LargeResultHarness::new(answer, ResultSettings::default(), MemorySettings::default());
    let meta = json!({"toolyard/session": "abc123"});
    let cut = harness.call("list_models", json!({}), meta.clone()).await;
    let cut = cut["content"][0]["text"].as_str().expect("a text").to_owned();
    let index = cut.split('`').nth(1).expect("the key of the outline").to_owned();
    let match_text =
        harness.call(tools::GET, json!({"key": index, "grep": "ERROR", "context": 1}), meta.clone()).await;
    let match_text = match_text["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(match_text.contains("\n4322:2026-11-23T10:17:42Z ERROR api-2 request r-004321"), "{match_text}");
    let tokens = [&cut, &match_text].map(|text| toolyard_core::tokens::estimate(text.len()));
    assert!(tokens.iter().sum::<usize>() < 600, "{tokens:?}");
    let base = keys::base_of(&index).expect("a key of a result");
    let (cut, match_text) =
        (cut.replace(base, "session/abc123/tool-list_models-a1b2c3"), match_text.replace(base, "BASE"));
    insta::assert_snapshot!(format!("{cut}\n---\n{match_text}"));

    // The numbers are those of the whole text, whatever key is given.
    let line = log.lines().nth(4_321).expect("a line");
    for key in [base, &index, &keys::chunk_key(base, 0), &keys::chunk_key(base, 5)] {
        let read = harness.call(tools::GET, json!({"key": key, "lines": "4322"}), meta.clone()).await;
        assert_eq!(read["content"][0]["text"], format!("Line 4322 of 6 100:\n{line}"), "{key}");
    }
    let read = async |key: &str, arguments: Value| {
        let mut call = json!({"key": key});
        call.as_object_mut().expect("an object").extend(arguments.as_object().expect("an object").clone());
        let read = harness.call(tools::GET, call, meta.clone()).await;
        read["content"][0]["text"].as_str().expect("a text").replace(base, "BASE")
    };
    let chunk = keys::chunk_key(base, 5);
    insta::assert_snapshot!(
        [
            read(&chunk, json!({"lines": "first 2"})).await,
            read(&chunk, json!({"grep": "ERROR"})).await,
            read(&chunk, json!({"grep": "r-00432[0-2]"})).await,
            read(&keys::chunk_key(base, 0), json!({"grep": "error"})).await,
            read(base, json!({"grep": "error", "ignore_case": true})).await,
            read(base, json!({"grep": "ERROR", "lines": "first 4000"})).await,
            read(base, json!({"lines": "7000-"})).await,
            read(base, json!({"grep": "GET (", "lines": "1-5"})).await,
            read(base, json!({"lines": "the end"})).await,
            read("nothing", json!({"lines": "1"})).await,
        ]
        .join("\n---\n")
    );
    // All lines match: the result is bounded, and says where to continue.
    let all = read(base, json!({"grep": "request"})).await;
    assert!(
        all.len() < 5_000
            && all.ends_with("[6 060 more: continue with lines \"41-\", or narrow the pattern]"),
        "{all}"
    );
}

/// Headings are the labels of chunks, and lines of the whole text nevertheless.
#[tokio::test]
async fn whole_text_has_its_headings() {
    let page = "# Fruits\n\n## Prices\n\napples 1\n\npears 2\n\n# Vegetables\n\n## Prices\n\nleeks 3\n\n";
    let harness = LargeResultHarness::small(json!({"content": [text(page)]}));
    let meta = json!({"toolyard/session": "abc123"});
    let cut = harness.result("list_models").await;
    let records = harness.memory.list(&MemoryNamespace::new("session", "abc123")).await.expect("a store");
    let base = keys::base_of(&records[0].key).expect("a key").to_owned();
    let read = async |key: String, arguments: Value| {
        let mut call = json!({"key": key});
        call.as_object_mut().expect("an object").extend(arguments.as_object().expect("an object").clone());
        let read = harness.call(tools::GET, call, meta.clone()).await;
        read["content"][0]["text"].as_str().expect("a text").replace(&base, "BASE")
    };
    insta::assert_snapshot!(
        [
            cut["content"][0]["text"].as_str().expect("a text").to_owned(),
            read(keys::index_key(&base), json!({})).await,
            read(base.clone(), json!({})).await,
            read(base.clone(), json!({"lines": "1-"})).await,
            read(base.clone(), json!({"grep": "^#"})).await,
            read(keys::chunk_key(&base, 1), json!({})).await,
            read(keys::chunk_key(&base, 1), json!({"lines": "first 9"})).await,
        ]
        .join("\n---\n")
    );
}
