//! Tool search with a third-party embeddings server.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::http_handler;
use toolyard_testing::peers;
use toolyard_testing::wait::eventually;

use crate::support::gateway::TestGateway;

/// Returns the names of the tools that a query finds.
fn found(gateway: &TestGateway, query: &str) -> Vec<String> {
    let text = gateway.text("search_tools", json!({"query": query, "limit": 3}));
    let result: Value = serde_json::from_str(&text).unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    result["tools"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn queries_in_other_languages_find_tools_by_their_embeddings() {
    let home = TempDir::new().unwrap();
    let (everything, embeddings) = (peers::everything(home.path()), peers::embeddings(home.path()));
    let gateway = |search: Value| {
        let handler = http_handler("everything", &everything.url);
        TestGateway::with_settings(&[handler], json!({"builtins": {"search": search}}))
    };
    let endpoint = json!({"baseURL": embeddings.url, "model": "e5", "queryTimeout": "30s"});
    let (by_words, hybrid) = (gateway(json!({})), gateway(json!({"embedding": endpoint})));

    let sum = "zwei Zahlen zusammenzählen";
    eventually("embeddings of the tools", || {
        found(&hybrid, sum).contains(&"get-sum".to_owned()).then_some(())
    });
    assert_eq!(found(&by_words, sum), [""; 0]);
    // What words find stays there.
    assert_eq!(found(&by_words, "sum of two numbers")[0], "get-sum");
    assert_eq!(found(&hybrid, "sum of two numbers")[0], "get-sum");
    assert!(found(&hybrid, "muéstrame una imagen pequeña").contains(&"get-tiny-image".to_owned()));
}
