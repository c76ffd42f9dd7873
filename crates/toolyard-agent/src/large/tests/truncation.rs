//! Results that working memory does not take.

use super::*;

#[tokio::test]
async fn result_is_truncated_if_working_memory_refuses_it() {
    let result = json!({"content": [text("first words,"), text(&"é".repeat(50)), text("lost")], "structuredContent": {"a": 1}});
    let shortened = async |harness: &LargeResultHarness, meta: Value| {
        let result = harness.call("list_models", json!({}), meta).await;
        format!("{result:#}").replace("\\n", "\n")
    };
    let session = json!({"toolyard/session": "abc123"});
    let options = ResultSettings { threshold: 40, least_chunk: 20, ..ResultSettings::default() };
    let limits = MemorySettings { entries: 2, ..MemorySettings::default() };
    let full = shortened(&LargeResultHarness::new(result.clone(), options, limits), session.clone()).await;
    let away = LargeResultHarness::small(result);
    away.meta(&session).await;
    away.store.go_away();
    let away = shortened(&away, session).await;
    insta::assert_snapshot!([full, away].join("\n---\n"));
}

#[tokio::test]
async fn model_without_working_memory_gets_a_truncated_result() {
    let content = json!([text(&"x".repeat(1000))]);
    let result = json!({"content": content, "structuredContent": {"result": "x".repeat(1000)}});
    let harness = LargeResultHarness::small(result.clone());
    let check = async |client: Arc<dyn Client>, scope: &str, tool: &str, expected: &Value| {
        let scope = [scope.parse().expect("a pattern")].into_iter().collect();
        let grant = AccessGrant { scope, ..AccessGrant::default() };
        let caller = Caller { grant: Some(Arc::new(grant)), ..Caller::default() };
        let session = json!({"toolyard/session": "a"});
        let answer = harness.call_by(client, caller, tool, json!({}), session).await;
        assert_eq!(&answer, expected);
        assert_eq!(harness.store.len(), 0);
    };
    check(Arc::new(NoClient), "*", "typed", &result).await;
    let notice = "[result truncated — 960 chars omitted]\nThe rest was not put into working memory. This caller does not have the tools of working memory. Ask the tool for less.";
    let cut = json!([text(&format!("{}\n{notice}", "x".repeat(40)))]);
    check(Arc::new(ModelClient), "fixed/*", "list_models", &json!({"content": cut})).await;
    let reference = json!({"storedResult": {"chars": 1000, "note": notice}});
    let expected = json!({"content": cut, "structuredContent": reference});
    check(Arc::new(ModelClient), "fixed/*", "typed", &expected).await;
}

/// The result is parsed on a blocking thread, and nothing is stored.
#[tokio::test]
async fn result_larger_than_working_memory_is_truncated() {
    let result = json!({"content": [text(&"words, ".repeat(300_000))]});
    let limits = MemorySettings { bytes: 1_000_000, ..MemorySettings::default() };
    let harness = LargeResultHarness::new(result, ResultSettings::default(), limits);
    let answer = harness.call("list_models", json!({}), json!({"toolyard/session": "abc123"})).await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    let (beginning, notice) = answer.split_at(answer.find('[').expect("a notice"));
    // The notice is within the bound.
    assert!((63_800..64_000).contains(&answer.chars().count()), "{}", answer.chars().count());
    assert!(beginning.chars().count() > 63_500, "{}", beginning.len());
    insta::assert_snapshot!(notice);
    assert_eq!(harness.store.len(), 0);
}
