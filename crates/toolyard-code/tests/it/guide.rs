//! The examples of the guide, as a model would run them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolyard_core::Backend;
use toolyard_manifest::CodeSettings;
use toolyard_sdk::{Server, Tool, ToolCall, ToolFailure, ToolReply};

use crate::harness::Harness;

/// Returns the blocks of code in a guide, with their languages.
fn blocks(guide: &str) -> Vec<(&str, &str)> {
    let blocks = guide.split("```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').expect("a language")).collect()
}

/// Returns the only script in the text of a guide.
fn short_script(guide: &str) -> &str {
    let (_, rest) = guide.split_once("run a short script first: `").expect("a script");
    rest.split_once('`').expect("its end").0
}

/// The shop of the examples: 20 items, and three orders on two pages.
fn shop() -> Arc<dyn Backend> {
    let order = |id: u64, customer: &str| json!({"id": id, "customer": customer});
    Server::new("shop", "1.0.0")
        .register_tool(Tool::new("list_items", "Lists items."), async || {
            let item = |number: u64| json!({"name": format!("item {number}"), "price": number * 10});
            Value::from((1..=20).map(item).collect::<Vec<_>>()).to_string()
        })
        .unwrap()
        .register_tool(Tool::new("list_orders", "Lists orders."), async move |call: ToolCall| {
            let page = call.arguments::<Value>()?["page"].as_u64().unwrap_or_default();
            let rows = match page {
                1 => vec![order(1, "c1"), order(2, "c2")],
                _ => vec![order(3, "c1")],
            };
            ToolReply::new().structured(&json!({"rows": rows, "more": page < 2}))
        })
        .unwrap()
        .into_backend()
}

fn customers() -> Arc<dyn Backend> {
    Server::new("crm", "1.0.0")
        .register_tool(Tool::new("get_customer", "Returns a customer."), async |call: ToolCall| {
            let id = call.arguments::<Value>()?["id"].as_str().unwrap_or_default().to_owned();
            let name = if id == "c1" { "Ada" } else { "Ben" };
            ToolReply::new().structured(&json!({"id": id, "name": name}))
        })
        .unwrap()
        .into_backend()
}

/// A server whose export fails once, and which deletes nothing.
fn reports() -> Arc<dyn Backend> {
    let attempts = Arc::new(AtomicUsize::new(0));
    Server::new("hub", "1.0.0")
        .register_tool(Tool::new("export_report", "Exports a report."), async move |_: ToolCall| {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 => Err(ToolFailure::new("the exporter is starting")),
                _ => Ok("exported"),
            }
        })
        .unwrap()
        .register_tool(Tool::new("delete_item", "Deletes an item."), async |_: ToolCall| {
            Err::<String, _>(ToolFailure::new("the item is in use"))
        })
        .unwrap()
        .register_tool(Tool::new("list", "Lists things."), async || {
            ToolReply::new().structured(&json!({"things": [1, 2]}))
        })
        .unwrap()
        .into_backend()
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_guide_run() {
    let harness = Harness::new(CodeSettings::default());
    let harness = harness.with_servers(vec![("shop", shop()), ("crm", customers()), ("hub", reports())]);
    let results = [
        r#"["item 11","item 12","item 13","item 14","item 15","item 16","item 17","item 18","item 19","item 20"]"#,
        r#"["Ada: 2","Ben: 1"]"#,
        "exported",
        "3",
    ];
    // The text that models read.
    let guide = toolyard_code::GUIDE.document;
    let examples = blocks(&guide);
    assert_eq!(examples.len(), results.len());
    for ((language, code), expected) in examples.into_iter().zip(results) {
        assert_eq!(harness.run(language, code).await, expected, "{code}");
    }
    assert_eq!(harness.run("javascript", short_script(&guide)).await, r#"{"things":[1,2]}"#);
}
