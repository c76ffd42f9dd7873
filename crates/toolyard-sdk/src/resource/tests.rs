use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::CallTarget;

use super::*;
use crate::context::testing::{self, ScriptedClient, describe_outcome};
use crate::input_required::InputRequired;
use crate::reply::Json;

async fn run(handler: BoxHandler, uri: &str, params: Value) -> String {
    let client = Arc::new(ScriptedClient::with(json!({"roots": {}})));
    let call = testing::call(CallTarget::Resource(uri.into()), params, &client);
    let (context, _running) = testing::context_of(&call);
    describe_outcome(handler(call, context).await)
}

/// The outcome of reading a resource.
async fn read<M>(handler: impl ResourceHandler<M>) -> String {
    run(super::handler(&Resource::new("x:a", "a"), handler), "x:a", json!({})).await
}

/// The outcome of reading a resource of this template.
async fn read_template<M>(template: &str, uri: &str, handler: impl TemplateHandler<M>) -> String {
    run(template_handler(&ResourceTemplate::new(template, "t"), handler), uri, json!({})).await
}

#[test]
fn definition_is_serialized_for_clients() {
    let resource = Resource::new("x:a", "a");
    assert_eq!(serde_json::to_string(&resource).unwrap(), r#"{"uri":"x:a","name":"a"}"#);
    let resource = resource
        .title("A")
        .description("The first")
        .mime_type("text/plain")
        .size(3)
        .annotations(Annotations { priority: Some(0.5), ..Annotations::default() })
        .icon(Icon::new("data:,"))
        .meta("a/b", 1)
        .cache(Duration::from_secs(1), CacheScope::Public);
    insta::assert_snapshot!(serde_json::to_string(&resource).unwrap(), @r#"{"uri":"x:a","name":"a","title":"A","description":"The first","mimeType":"text/plain","size":3,"annotations":{"priority":0.5},"icons":[{"src":"data:,"}],"_meta":{"a/b":1}}"#);
    let template = ResourceTemplate::new("x:{a}", "a")
        .title("A")
        .description("All")
        .mime_type("text/plain")
        .meta("a/b", 1);
    insta::assert_snapshot!(serde_json::to_string(&template).unwrap(), @r#"{"uriTemplate":"x:{a}","name":"a","title":"A","description":"All","mimeType":"text/plain","_meta":{"a/b":1}}"#);
}

#[tokio::test]
async fn return_types_become_contents() {
    let cache = r#""ttlMs":0,"cacheScope":"private"}"#;
    let text = format!(r#"{{"contents":[{{"uri":"x:a","text":"t"}}],{cache}"#);
    let blob = format!(r#"{{"contents":[{{"uri":"x:a","blob":"YWJj"}}],{cache}"#);
    assert_eq!(read(async || "t").await, text);
    assert_eq!(read(|| String::from("t")).await, text);
    assert_eq!(read(async || Some("t")).await, text);
    assert_eq!(read(|| Ok::<_, std::io::Error>("t")).await, text);
    assert_eq!(read(async || b"abc".to_vec()).await, blob);
    assert_eq!(read(async || Bytes::from_static(b"abc")).await, blob);
    assert_eq!(read(|| &b"abc"[..]).await, blob);
    insta::assert_snapshot!(read(async || Json(json!({"a": 1}))).await, @r#"{"contents":[{"uri":"x:a","text":"{\"a\":1}"}],"ttlMs":0,"cacheScope":"private"}"#);
    let several = async || {
        vec![
            ResourceContents::text("t").uri("x:b").mime_type("text/plain").meta("a/b", 1),
            ResourceContents::blob(b"abc"),
        ]
    };
    insta::assert_snapshot!(read(several).await, @r#"{"contents":[{"uri":"x:b","mimeType":"text/plain","text":"t","_meta":{"a/b":1}},{"uri":"x:a","blob":"YWJj"}],"ttlMs":0,"cacheScope":"private"}"#);
    let reply =
        async || ResourceReply::new().cache(Duration::from_millis(1500), CacheScope::Public).meta("a/b", 1);
    insta::assert_snapshot!(read(reply).await, @r#"{"contents":[],"ttlMs":1500,"cacheScope":"public","_meta":{"a/b":1}}"#);
    assert_eq!(read(|ctx: Context| ctx.request_name().replace("x:a", "t")).await, text);
    assert_eq!(read(async |ctx: Context| ctx.request_name().replace("x:a", "t")).await, text);
}

#[tokio::test]
async fn missing_resource_is_not_found() {
    let missing = "ResourceNotFound Resource not found: x:a";
    assert_eq!(read(async || None::<String>).await, missing);
    assert_eq!(read(async || Err::<String, _>(NotFound)).await, missing);
    let by_question_mark = || -> Result<String, ToolFailure> { Ok(None::<String>.ok_or(NotFound)?) };
    assert_eq!(read(by_question_mark).await, missing);
    let failing = async || Err::<String, _>("the disk is full");
    assert_eq!(read(failing).await, "ExecutionFailed the disk is full");
    let own = async || Err::<String, _>(ToolError::new(ErrorCode::ResourceNotFound, "It was moved"));
    assert_eq!(read(own).await, "ResourceNotFound It was moved");
}

#[tokio::test]
async fn answers_disable_caching() {
    let resource =
        Resource::new("x:a", "a").mime_type("text/plain").cache(Duration::from_secs(60), CacheScope::Public);
    let handler = super::handler(&resource, async || "t");
    insta::assert_snapshot!(run(handler.clone(), "x:a", json!({})).await, @r#"{"contents":[{"uri":"x:a","mimeType":"text/plain","text":"t"}],"ttlMs":60000,"cacheScope":"public"}"#);
    insta::assert_snapshot!(run(handler, "x:a", json!({"inputResponses": {}})).await, @r#"{"contents":[{"uri":"x:a","mimeType":"text/plain","text":"t"}],"ttlMs":0,"cacheScope":"private"}"#);
}

#[tokio::test]
async fn resource_asks_its_client() {
    async fn roots(ctx: Context) -> ResourceReply {
        match ctx.roots_answer("roots") {
            Some(roots) => ResourceReply::new().contents(ResourceContents::text(roots.len().to_string())),
            None => InputRequired::new().ask("roots", crate::roots::RootsRequest).into(),
        }
    }
    let handler = super::handler(&Resource::new("x:a", "a"), roots);
    insta::assert_snapshot!(run(handler.clone(), "x:a", json!({})).await, @r#"asks {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list","params":{}}}}"#);
    let answers = json!({"inputResponses": {"roots": {"roots": []}}});
    insta::assert_snapshot!(run(handler, "x:a", answers).await, @r#"{"contents":[{"uri":"x:a","text":"0"}],"ttlMs":0,"cacheScope":"private"}"#);
}

#[derive(Deserialize)]
struct Page {
    book: String,
    number: Option<u32>,
}

#[tokio::test]
async fn template_variables_are_passed_to_the_handler() {
    let check = async |answer: String, uri: &str, text: &str| {
        let expected =
            format!(r#"{{"contents":[{{"uri":"{uri}","text":"{text}"}}],"ttlMs":0,"cacheScope":"private"}}"#);
        assert_eq!(answer, expected);
    };
    let page = async |page: Page| format!("{} {:?}", page.book, page.number);
    check(read_template("b:{book}/{number}", "b:a%20b/7", page).await, "b:a%20b/7", "a b Some(7)").await;
    check(read_template("b:{book}{?number}", "b:a", page).await, "b:a", "a None").await;
    check(read_template("b:{book}{?number}", "b:a?number=7", page).await, "b:a?number=7", "a Some(7)").await;
    check(read_template("b:{id}", "b:7", |id: u32| (id + 1).to_string()).await, "b:7", "8").await;
    let pair = async |(book, number): (String, u8)| format!("{book} {number}");
    check(read_template("b:{x}/{y}", "b:a/7", pair).await, "b:a/7", "a 7").await;
    check(
        read_template("b:{+x}", "b:a/7", async |ResourceUri(uri): ResourceUri| uri).await,
        "b:a/7",
        "b:a/7",
    )
    .await;
    let both = |ctx: Context, id: String| format!("{} {id}", ctx.request_name());
    check(read_template("b:{x}", "b:a", both).await, "b:a", "b:a a").await;
    check(
        read_template("b:{x}", "b:a", async |ctx: Context| ctx.request_name().to_owned()).await,
        "b:a",
        "b:a",
    )
    .await;
    check(read_template("b:{x}", "b:a", || "t").await, "b:a", "t").await;
}

#[tokio::test]
async fn invalid_variable_is_not_found() {
    let page = async |page: Page| page.book;
    insta::assert_snapshot!(read_template("b:{book}/{number}", "b:a/x", page).await, @"ResourceNotFound Resource not found: b:a/x (`number`: not a whole number: invalid digit found in string)");
    insta::assert_snapshot!(read_template("b:{number}", "b:7", page).await, @"ResourceNotFound Resource not found: b:7 (missing field `book`)");
    insta::assert_snapshot!(read_template("b:{book}", "c:7", page).await, @"ResourceNotFound Resource not found: c:7");
    insta::assert_snapshot!(read_template("b:{book", "b:7", page).await, @"ResourceNotFound Resource not found: b:7");
    insta::assert_snapshot!(read_template("b:{x}", "b:7", async |_: String| Err::<&str, _>(NotFound)).await, @"ResourceNotFound Resource not found: b:7");
}
