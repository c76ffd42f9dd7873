//! Ids and handles: what they open, and for which callers.

use super::*;

/// Returns the key of the first chunk in the text of a result.
fn first_key(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str().expect("a text");
    text.lines()
        .filter(|line| line.starts_with("| 0 |"))
        .find_map(|line| line.split('`').nth(1))
        .expect("a key")
        .into()
}

fn keyed(principal: &str) -> Caller {
    Caller { principal: Some(principal.into()), ..Caller::default() }
}

/// The client of 2026-07-28 without a key and without a host that returns handles.
#[tokio::test]
async fn caller_without_session_and_key_reads_a_result_by_its_id() {
    let log = "[INFO] line one happened\n[INFO] line two happened";
    let harness = LargeResultHarness::small(json!({"content": [text(log)], "_meta": {"a": 1}}));
    let cut = harness.call("list_models", json!({}), json!({})).await;
    let key = first_key(&cut);
    assert!(key.starts_with("session/tyid_") && key.len() < 130, "{key}");
    assert_eq!(cut["_meta"]["a"], 1);
    let base = keys::base_of(&key).expect("a key of a result").to_owned();
    let read = async |tool: &str, arguments: Value| {
        let result = harness.call(tool, arguments, json!({})).await;
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    assert!(log.starts_with(&read(tools::GET, json!({"key": key})).await));
    assert!(log.starts_with(&read(tools::GET, json!({"key": key.replace("session/", "Session/")})).await));
    let outline = read(tools::GET, json!({"key": keys::index_key(&base)})).await;
    assert!(outline.contains(&format!("`{key}`")), "{outline}");
    let hits = read(tools::SEARCH, json!({"query": "two", "namespace": base})).await;
    assert!(hits.contains(&format!("- `{base}-chunk1` (20m0s left")), "{hits}");

    // Changes and lists take the handle of the result.
    let refused = "This call has no namespace in working memory";
    for (tool, arguments) in [
        (tools::SAVE, json!({"key": "notes", "data": "x"})),
        (tools::SAVE, json!({"key": key, "data": "x"})),
        (tools::DELETE, json!({"key": key})),
        (tools::LIST, json!({})),
        (tools::LIST, json!({"namespace": base})),
        (tools::GET, json!({"key": "notes"})),
    ] {
        let text = read(tool, arguments.clone()).await;
        assert!(text.starts_with(refused), "{tool} {arguments}: {text}");
    }
    let handle = cut["_meta"][SESSION_META].as_str().expect("a handle").to_owned();
    let meta = Object::new().with(SESSION_META, Json::string(&handle));
    let with_handle = async |tool: &str, arguments: Value| {
        let call = Call {
            client: Arc::new(ModelClient),
            meta: meta.clone(),
            ..Call::tool(tool, Json::from_value(&arguments))
        };
        let Ok(Outcome::Done(output)) = harness.gateway.invoke(call).await else { panic!("no result") };
        output.body.to_json().to_value()["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    assert!(with_handle(tools::SAVE, json!({"key": "notes", "data": "x"})).await.starts_with("Saved to"));
    let list = with_handle(tools::LIST, json!({})).await;
    assert!(list.contains("/notes` (") && list.contains("-chunk0` ("), "{list}");
    assert_eq!(with_handle(tools::GET, json!({"key": "notes"})).await, "x");
    // The id opens its result, and nothing else in the same namespace.
    let id = base.rsplit_once('/').expect("a namespace").0;
    for key in [format!("{id}/notes"), format!("{id}/tool-list_models-ffffff-chunk0"), format!("{id}/")] {
        let missing = format!("Working memory entry '{key}' not found or has expired.");
        assert_eq!(read(tools::GET, json!({"key": key})).await, missing);
        assert_eq!(read(tools::QUERY, json!({"key": key, "expression": "@"})).await, missing);
    }
    harness.store.pass(std::time::Duration::from_secs(20 * 60));
    assert!(read(tools::GET, json!({"key": key})).await.ends_with("not found or has expired."));
}

/// Ids and handles that a text may bring to a model, or a host to the gateway.
#[tokio::test]
async fn id_of_another_key_or_purpose_opens_nothing() {
    let harness = LargeResultHarness::small(json!({"content": [text(&"words of a result ".repeat(4))]}));
    let client = || -> Arc<dyn Client> { Arc::new(ModelClient) };
    let call = async |caller: Caller, tool: &str, arguments: Value, handle: Option<&str>| {
        let meta = handle.map(|handle| Object::new().with(SESSION_META, Json::string(handle)));
        let call = Call {
            client: client(),
            caller,
            meta: meta.unwrap_or_default(),
            ..Call::tool(tool, Json::from_value(&arguments))
        };
        let Ok(Outcome::Done(output)) = harness.gateway.invoke(call).await else { panic!("no result") };
        output.body.to_json().to_value()
    };
    let text_of = |result: &Value| result["content"][0]["text"].as_str().expect("a text").to_owned();
    let handle_of = |result: &Value| result["_meta"][SESSION_META].as_str().expect("a handle").to_owned();
    let cut = call(Caller::default(), "list_models", json!({}), None).await;
    let (key, handle) = (first_key(&cut), handle_of(&cut));
    let (id, rest) = key.strip_prefix("session/").and_then(|key| key.split_once('/')).expect("a path");
    let of_key = call(keyed("k7"), "list_models", json!({}), None).await;
    let (key_of_k7, handle_of_k7) = (first_key(&of_key), handle_of(&of_key));
    assert!(key_of_k7.starts_with("key/k7/"), "{key_of_k7}");
    call(Caller::default(), tools::SAVE, json!({"key": "notes", "data": "x"}), Some(&handle)).await;

    let mut forged = id.to_owned();
    forged.replace_range(20..21, if &id[20..21] == "A" { "B" } else { "A" });
    let unopened = async |caller: &Caller, handle: Option<&str>, key: &str| {
        for (tool, arguments) in [
            (tools::GET, json!({"key": key})),
            (tools::QUERY, json!({"key": key, "expression": "@"})),
            (tools::SEARCH, json!({"namespace": key})),
            (tools::DELETE, json!({"key": key})),
            (tools::LIST, json!({"namespace": key})),
        ] {
            let result = call(caller.clone(), tool, arguments, handle).await;
            assert!(!text_of(&result).contains("words"), "{tool} {key}: {result}");
            assert!(!text_of(&result).starts_with("Deleted"), "{tool} {key}: {result}");
        }
    };
    let nobody = Caller::default();
    // A forged id, an id of another key, and handles as a part of a key.
    unopened(&nobody, None, &format!("session/{forged}/{rest}")).await;
    unopened(&keyed("k7"), None, &key).await;
    unopened(&nobody, None, &key_of_k7).await;
    unopened(&keyed("k8"), Some(&handle_of_k7), &key_of_k7).await;
    unopened(&nobody, None, &format!("session/{handle}/{rest}")).await;
    unopened(&nobody, None, &format!("session/{handle}/notes")).await;
    // As a handle, neither a name, nor an id, nor a handle of another key, nor a forged one gives a namespace.
    for refused in ["abc123", id, &handle_of_k7, &forged, "tyid_", ""] {
        let result = call(nobody.clone(), tools::LIST, json!({}), Some(refused)).await;
        let answer = text_of(&result);
        assert!(
            answer.starts_with("The `toolyard/session` of this request is no valid handle"),
            "{refused}: {answer}"
        );
        assert_ne!(handle_of(&result), refused);
    }
    let own = text_of(&call(keyed("k7"), tools::LIST, json!({}), Some(&handle)).await);
    assert!(own.contains("`key/k7/tool-list_models"), "{own}");
    let own = text_of(&call(keyed("k8"), tools::LIST, json!({}), Some(&handle_of_k7)).await);
    assert!(own.contains("`key/k8`") && !own.contains("chunk"), "{own}");
    // An id that was planted in a text is no place to save to, with whatever handle.
    let planted = json!({"key": key, "data": "planted"});
    let saved = call(
        nobody.clone(),
        tools::SAVE,
        planted,
        Some(&handle_of(&call(nobody.clone(), tools::LIST, json!({}), None).await)),
    )
    .await;
    let place = text_of(&saved);
    assert!(
        place.starts_with("Saved to working memory as `session/") && place.contains(&format!("/{key}`")),
        "{place}"
    );
    assert!(text_of(&call(nobody.clone(), tools::GET, json!({"key": key}), None).await).starts_with("words"));
    // A handle lasts a day, and each result has one that lasts a day again.
    harness.store.pass(std::time::Duration::from_secs(23 * 3600));
    let renewed = handle_of(&call(nobody.clone(), tools::LIST, json!({}), Some(&handle)).await);
    harness.store.pass(std::time::Duration::from_secs(3600));
    let expired = call(nobody.clone(), tools::LIST, json!({}), Some(&handle)).await;
    assert!(text_of(&expired).contains("no valid handle"), "{expired}");
    let list = call(nobody.clone(), tools::LIST, json!({}), Some(&renewed)).await;
    assert!(text_of(&list).starts_with("There is nothing in working memory"), "{list}");
}

/// A server could use the handle of its caller, and one that it sets would be that of another namespace.
#[tokio::test]
async fn servers_neither_get_nor_set_handles() {
    let planted = json!({"content": [text("short")], "_meta": {"toolyard/session": "tyid_planted"}});
    let harness = LargeResultHarness::small(planted);
    assert_eq!(harness.call("list_models", json!({}), json!({})).await, json!({"content": [text("short")]}));
    let planted_result =
        json!({"content": [text("short")], "_meta": {"toolyard/session": "tyid_planted", "a": 1}});
    let harness = LargeResultHarness::small(planted_result);
    let result = harness.call("list_models", json!({}), json!({"toolyard/session": "abc123"})).await;
    assert_eq!(result["_meta"], json!({"a": 1}));
    let echo = LargeResultHarness::small(json!("echo"));
    let result = echo.call("list_models", json!({}), json!({"toolyard/session": "abc123", "a": 1})).await;
    assert_eq!(result["content"][0]["text"], r#"{"a":1}"#);
    // What a holder of a key chooses is no secret.
    let (client, meta) = (Arc::new(ModelClient), Object::new().with(SESSION_META, Json::string("mine")));
    let call = Call { client, meta, caller: keyed("k7"), ..Call::tool("list_models", Json::null()) };
    let Ok(Outcome::Done(output)) = echo.gateway.invoke(call).await else { panic!("no result") };
    assert!(output.body.to_json().as_text().contains("mine"));
}

/// A model that follows the explanation of abbreviated keys reads each chunk, and one that does not is told to.
#[tokio::test]
async fn abbreviated_keys_open_chunks_when_they_are_completed() {
    let page: String = (0..6).map(|n| format!("# Section {n}\nsome words of part {n}\n")).collect();
    let harness = LargeResultHarness::small(json!({"content": [text(&page)]}));
    let read = async |tool: &str, arguments: Value| {
        let result = harness.call(tool, arguments, json!({})).await;
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    let cut = read("list_models", json!({})).await;
    let legend = cut.lines().find(|line| line.starts_with("Keys are abbreviated")).expect("an explanation");
    let [_, long, _, short, _] = legend.split('`').collect::<Vec<_>>()[..] else { panic!("{legend}") };
    let base = keys::base_of(long).expect("a key of a result");
    let outline = read(tools::GET, json!({"key": keys::index_key(base)})).await;
    assert!(outline.contains(legend), "{outline}");
    for number in 0..6 {
        let list = format!("`{}`", keys::chunk_key("…", number));
        assert!(cut.contains(&list) && outline.contains(&list), "{cut}\n{outline}");
        let chunk = read(tools::GET, json!({"key": keys::chunk_key(base, number)})).await;
        assert!(chunk.contains(&format!("words of part {number}")), "{chunk}");
    }
    for tool in [tools::GET, tools::QUERY, tools::DELETE] {
        let refused = read(tool, json!({"key": short, "expression": "@"})).await;
        assert!(refused.starts_with("key: is abbreviated: write the beginning"), "{tool}: {refused}");
    }
    assert_eq!(cut.matches("tyid_").count(), 2, "{cut}");
}
