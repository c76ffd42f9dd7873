use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::CallTarget;

use super::*;
use crate::content::Content;
use crate::context::Context;
use crate::context::testing::{self, ScriptedClient, describe_outcome};
use crate::elicit::{ElicitRequest, ElicitResult};
use crate::failure::ToolFailure;
use crate::input_required::InputRequired;

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The code to review
    code: String,
    #[serde(rename = "maxRemarks")]
    remarks: Option<u32>,
    #[serde(default)]
    #[schemars(title = "Strictly?")]
    strict: bool,
    style: Option<Style>,
}

/// The tone of the review
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Style {
    Kind,
    Plain,
}

async fn review(args: Review) -> String {
    format!("{} {:?} {} {:?}", args.code, args.remarks, args.strict, args.style)
}

/// The outcome of a prompt for these parameters.
async fn fill<M>(handler: impl PromptHandler<M>, params: Value) -> String {
    fill_for(handler, params, ScriptedClient::default()).await
}

async fn fill_for<M>(handler: impl PromptHandler<M>, params: Value, client: ScriptedClient) -> String {
    let handler = super::handler(&mut Prompt::new("p", ""), handler);
    let call = testing::call(CallTarget::Prompt("p".into()), params, &Arc::new(client));
    let (context, _running) = testing::context_of(&call);
    describe_outcome(handler(call, context).await)
}

#[test]
fn definition_includes_the_arguments() {
    let definition = |prompt: &Prompt| serde_json::to_string(prompt).unwrap();
    let mut prompt = Prompt::new("review", "Asks for a review.");
    handler(&mut prompt, review);
    insta::assert_snapshot!(definition(&prompt), @r#"{"name":"review","description":"Asks for a review.","arguments":[{"name":"code","description":"The code to review","required":true},{"name":"maxRemarks"},{"name":"strict","title":"Strictly?"},{"name":"style"}]}"#);
    let mut prompt = Prompt::new("review", "")
        .title("Review")
        .argument(PromptArgument::new("code").title("Code").description("All of it").required(true))
        .icon(Icon::new("data:,"))
        .meta("a/b", 1);
    handler(&mut prompt, review);
    insta::assert_snapshot!(definition(&prompt), @r#"{"name":"review","title":"Review","arguments":[{"name":"code","title":"Code","description":"All of it","required":true}],"icons":[{"src":"data:,"}],"_meta":{"a/b":1}}"#);
    let mut prompt = Prompt::new("simple", "");
    handler(&mut prompt, async || "simple");
    assert_eq!(definition(&prompt), r#"{"name":"simple"}"#);
}

#[tokio::test]
async fn arguments_are_parsed_from_strings() {
    let check = async |arguments: Value, expected: &str| {
        let answer = fill(review, json!({ "arguments": arguments })).await;
        let message = |text: &str| {
            format!(r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":"{text}"}}}}]}}"#)
        };
        assert_eq!(answer, message(expected));
    };
    check(json!({"code": "a"}), "a None false None").await;
    check(
        json!({"code": "1", "maxRemarks": "3", "strict": "true", "style": "kind"}),
        "1 Some(3) true Some(Kind)",
    )
    .await;
    check(json!({"code": "1", "maxRemarks": 3, "strict": true, "style": null}), "1 Some(3) true None").await;
    check(json!({"code": "", "maxRemarks": "", "other": "x"}), " None false None").await;
}

#[tokio::test]
async fn error_names_the_invalid_argument() {
    insta::assert_snapshot!(fill(review, json!({})).await, @"InvalidArguments Missing required argument: `code`");
    insta::assert_snapshot!(fill(review, json!({"arguments": {"code": null}})).await, @"InvalidArguments Missing required argument: `code`");
    insta::assert_snapshot!(fill(review, json!({"arguments": {"code": "a", "maxRemarks": "-1"}})).await, @"InvalidArguments Invalid arguments: `maxRemarks`: not a whole number: invalid digit found in string");
    insta::assert_snapshot!(fill(review, json!({"arguments": {"code": "a", "style": "rude"}})).await, @"InvalidArguments Invalid arguments: `style`: unknown variant `rude`, expected `kind` or `plain`");
    insta::assert_snapshot!(fill(review, json!({"arguments": [1]})).await, @"InvalidArguments Missing required argument: `code`");

    let mut prompt = Prompt::new("p", "");
    for name in ["a", "b", "c"] {
        prompt = prompt.argument(PromptArgument::new(name).required(name != "c"));
    }
    let handler = handler(&mut prompt, async || "filled in");
    let call = testing::call(CallTarget::Prompt("p".into()), json!({}), &Arc::default());
    let context = testing::context_of(&call).0;
    assert_eq!(
        describe_outcome(handler(call, context).await),
        "InvalidArguments Missing required arguments: `a`, `b`"
    );
}

#[tokio::test]
async fn handler_forms_are_supported() {
    let text = |text: &str| {
        format!(r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":"{text}"}}}}]}}"#)
    };
    let arguments = json!({"arguments": {"code": "a"}});
    assert_eq!(fill(|| "plain", json!({})).await, text("plain"));
    assert_eq!(fill(|args: Review| args.code, arguments.clone()).await, text("a"));
    assert_eq!(fill(|ctx: Context| ctx.request_name().to_owned(), json!({})).await, text("p"));
    let both = |ctx: Context, args: Review| format!("{} {}", ctx.request_name(), args.code);
    assert_eq!(fill(both, arguments.clone()).await, text("p a"));
    assert_eq!(fill(async || String::from("async"), json!({})).await, text("async"));
    assert_eq!(fill(async |ctx: Context| ctx.request_name().to_owned(), json!({})).await, text("p"));
    let both = async |ctx: Context, args: Review| format!("{} {}", ctx.request_name(), args.code);
    assert_eq!(fill(both, arguments).await, text("p a"));
}

#[tokio::test]
async fn return_types_become_messages() {
    insta::assert_snapshot!(fill(async || Content::image(b"abc", "image/png"), json!({})).await, @r#"{"messages":[{"role":"user","content":{"type":"image","data":"YWJj","mimeType":"image/png"}}]}"#);
    insta::assert_snapshot!(fill(async || PromptMessage::assistant("Hi"), json!({})).await, @r#"{"messages":[{"role":"assistant","content":{"type":"text","text":"Hi"}}]}"#);
    let messages = async || vec![PromptMessage::user("Hi"), PromptMessage::assistant("Ho")];
    insta::assert_snapshot!(fill(messages, json!({})).await, @r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}},{"role":"assistant","content":{"type":"text","text":"Ho"}}]}"#);
    let reply = async || PromptReply::new().description("A greeting").user("Hi").meta("a/b", 1);
    insta::assert_snapshot!(fill(reply, json!({})).await, @r#"{"description":"A greeting","messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"_meta":{"a/b":1}}"#);
    let failing = async || Err::<String, _>(std::io::Error::other("the disk is full"));
    insta::assert_snapshot!(fill(failing, json!({})).await, @"ExecutionFailed the disk is full");
    let refusing = async || Err::<&str, _>(ToolFailure::protocol(-32602, "no"));
    insta::assert_snapshot!(fill(refusing, json!({})).await, @r#"ExecutionFailed {"code":-32602,"message":"no"}"#);
}

#[derive(Deserialize, JsonSchema)]
struct About {
    context: String,
}

async fn ask_context(ctx: Context) -> PromptReply {
    match ctx.elicit_answer::<About>("user_context") {
        Some(ElicitResult::Accepted(about)) => PromptReply::new().user(about.context),
        _ => InputRequired::new().ask("user_context", ElicitRequest::form::<About>("What about?")).into(),
    }
}

#[tokio::test]
async fn prompt_asks_its_client() {
    let client = || ScriptedClient::with(json!({"elicitation": {}}));
    insta::assert_snapshot!(fill_for(ask_context, json!({}), client()).await, @r#"asks {"resultType":"input_required","inputRequests":{"user_context":{"method":"elicitation/create","params":{"mode":"form","message":"What about?","requestedSchema":{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}}}}}"#);
    let answers =
        json!({"inputResponses": {"user_context": {"action": "accept", "content": {"context": "cats"}}}});
    insta::assert_snapshot!(fill_for(ask_context, answers, client()).await, @r#"{"messages":[{"role":"user","content":{"type":"text","text":"cats"}}]}"#);
    insta::assert_snapshot!(fill_for(ask_context, json!({}), ScriptedClient::default()).await, @r#"MissingCapability {"elicitation":{}}"#);
}
