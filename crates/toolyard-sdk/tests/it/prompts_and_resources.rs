//! Prompts, resources and completion, from registration to the response.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_sdk::{
    JsonSchema, Prompt, RegisterError, Resource, ResourceTemplate, ResourceUri, Result, Server, Tool,
};

use crate::support::Peer;

#[derive(Deserialize, JsonSchema)]
struct ReviewArgs {
    /// The code to review
    code: String,
    language: Option<String>,
}

async fn review(args: ReviewArgs) -> String {
    format!("Review this {}: {}", args.language.as_deref().unwrap_or("code"), args.code)
}

fn languages(typed: String) -> Vec<&'static str> {
    ["python", "perl", "rust"].into_iter().filter(|name| name.starts_with(&typed)).collect()
}

fn server() -> Result<Server> {
    let template = ResourceTemplate::new("doc:///{name}", "document").mime_type("text/plain");
    let server = Server::new("test", "1.0.0")
        .prompt("review", "Reviews code.", review)?
        .complete_prompt("review", "language", languages)?
        .resource(Resource::new("config:///app", "config"), || "debug = false")?
        .resource_template(template, async |uri: ResourceUri| format!("the text of {}", uri.0))?
        .complete_resource("doc:///{name}", "name", async |_: String| ["a", "b"])?;
    Ok(server)
}

#[tokio::test]
async fn prompts_and_resources_answer() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let cases = [
        ("prompts/list", json!({}), "/prompts/0/arguments/0/name", json!("code")),
        (
            "prompts/get",
            json!({"name": "review", "arguments": {"code": "x"}}),
            "/messages/0/content/text",
            json!("Review this code: x"),
        ),
        ("prompts/get", json!({"name": "review"}), "/error/code", json!(-32602)),
        ("prompts/get", json!({"name": "absent"}), "/error/code", json!(-32602)),
        ("resources/list", json!({}), "/resources/0/uri", json!("config:///app")),
        ("resources/templates/list", json!({}), "/resourceTemplates/0/uriTemplate", json!("doc:///{name}")),
        ("resources/read", json!({"uri": "config:///app"}), "/contents/0/text", json!("debug = false")),
        ("resources/read", json!({"uri": "doc:///a"}), "/contents/0/text", json!("the text of doc:///a")),
        ("resources/read", json!({"uri": "doc:///a"}), "/contents/0/mimeType", json!("text/plain")),
    ];
    for (method, params, pointer, expect) in cases {
        let answer = peer.request(method, params).await;
        assert_eq!(answer.pointer(pointer), Some(&expect), "{method}: {answer}");
    }
}

#[tokio::test]
async fn arguments_are_completed() {
    let mut peer = Peer::initialized(server().unwrap()).await;
    let prompt = json!({"type": "ref/prompt", "name": "review"});
    let template = json!({"type": "ref/resource", "uri": "doc:///{name}"});
    let resource = json!({"type": "ref/resource", "uri": "config:///app"});
    let cases: [(&Value, &str, &str, Value); 4] = [
        (&prompt, "language", "p", json!(["python", "perl"])),
        (&prompt, "code", "p", json!([])),
        (&template, "name", "", json!(["a", "b"])),
        (&resource, "name", "", json!([])),
    ];
    for (reference, name, value, expect) in cases {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        let answer = peer.request("completion/complete", params).await;
        assert_eq!(answer["completion"]["values"], expect, "{reference} {name}: {answer}");
    }
}

#[tokio::test]
async fn items_added_while_serving_are_completed() {
    let server = Server::new("test", "1.0.0");
    let handle = server.handle();
    let mut peer = Peer::initialized(server).await;
    handle.add_prompt(Prompt::new("review", ""), review).unwrap();
    handle.complete_prompt("review", "language", languages).unwrap();
    handle
        .add_template(ResourceTemplate::new("doc:///{name}", "document"), async |uri: ResourceUri| uri.0)
        .unwrap();
    handle.complete_resource("doc:///{name}", "name", async |_: String| ["a", "b"]).unwrap();
    let unknown = handle.complete_prompt("absent", "language", languages).unwrap_err();
    assert_eq!(unknown.to_string(), "no prompt \"absent\" to complete: register it first");
    let cases = [
        (json!({"type": "ref/prompt", "name": "review"}), "language", json!(["python", "perl"])),
        (json!({"type": "ref/resource", "uri": "doc:///{name}"}), "name", json!(["a", "b"])),
    ];
    for (reference, name, expect) in cases {
        let params = json!({"ref": reference, "argument": {"name": name, "value": "p"}});
        let answer = peer.request("completion/complete", params).await;
        assert_eq!(answer["completion"]["values"], expect, "{answer}");
    }
    peer.close().await.unwrap();
    assert_eq!(handle.complete_prompt("review", "language", languages), Err(RegisterError::Ended));
}

#[tokio::test]
async fn subscriber_is_notified_of_a_change() {
    let server = server().unwrap();
    let handle = server.handle();
    let mut peer = Peer::initialized(server).await;
    for uri in ["config:///app", "doc:///a"] {
        peer.request("resources/subscribe", json!({"uri": uri})).await;
        handle.resource_updated("doc:///other");
        handle.resource_updated(uri);
        let notice = peer.next().await;
        assert_eq!(notice["method"], "notifications/resources/updated");
        assert_eq!(notice["params"]["uri"], uri);
    }
}

#[tokio::test]
async fn list_changes_are_notified() {
    let server = server().unwrap();
    let handle = server.handle();
    let mut peer = Peer::initialized(server).await;
    // After this response, every further message is a notification.
    peer.request("ping", json!({})).await;
    handle.add_prompt(Prompt::new("greet", ""), || "Say hello.").unwrap();
    assert_eq!(peer.next().await["method"], "notifications/prompts/list_changed");
    handle.add_resource(Resource::new("config:///db", "db"), || "").unwrap();
    assert_eq!(peer.next().await["method"], "notifications/resources/list_changed");
    handle.add_tool(Tool::new("t", ""), || "").unwrap();
    assert_eq!(peer.next().await["method"], "notifications/tools/list_changed");
    assert!(handle.remove_template("doc:///{name}"));
    assert_eq!(peer.next().await["method"], "notifications/resources/list_changed");
    let gone = peer.request("resources/read", json!({"uri": "doc:///a"})).await;
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
}
