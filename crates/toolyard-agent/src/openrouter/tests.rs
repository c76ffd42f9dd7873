use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use toolyard_core::Backend;
use toolyard_sdk::Server;

use super::resource::{InvalidId, ResourceId};
use super::response::json_text;
use super::*;
use crate::testing::{definitions, read, read_all};

/// Examples of the vendor's OpenAPI document, by path and status.
const EXAMPLES: &str = include_str!("../../../../fixtures/openrouter/responses.json");

/// Returns prepared responses in order, and records what was requested.
#[derive(Default)]
struct PreparedApi {
    responses: Mutex<VecDeque<Result<OpenRouterResponse, OpenRouterError>>>,
    requests: Mutex<Vec<String>>,
}

impl OpenRouterApi for PreparedApi {
    fn get<'a>(
        &'a self,
        resource: &'a OpenRouterResource,
    ) -> BoxFuture<'a, Result<OpenRouterResponse, OpenRouterError>> {
        self.requests.lock().expect("no panic").push(resource.path());
        let response = self.responses.lock().expect("no panic").pop_front();
        ready(response.unwrap_or_else(|| Ok(response_of(200, "{}")))).boxed()
    }
}

/// Returns an API whose resources are empty.
pub(crate) fn api() -> Arc<dyn OpenRouterApi> {
    Arc::<PreparedApi>::default()
}

fn response_of(status: u16, body: &str) -> OpenRouterResponse {
    OpenRouterResponse { status, body: body.to_owned().into(), retry_after: None }
}

fn backend(api: &Arc<PreparedApi>) -> Arc<dyn Backend> {
    let api: Arc<dyn OpenRouterApi> = api.clone();
    let server = Server::new("openrouter", "1.0.0").omit_schema_dialect();
    add(server, &api).expect("tools").into_backend()
}

fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).expect("an id")
}

/// All resources, each with a tool that reads it.
fn resources() -> [OpenRouterResource; 6] {
    [
        OpenRouterResource::Credits,
        OpenRouterResource::CurrentKey,
        OpenRouterResource::Models,
        OpenRouterResource::Keys,
        OpenRouterResource::Key(id("f01d")),
        OpenRouterResource::Generation(id("gen-1234567890")),
    ]
}

#[test]
fn tool_definitions_are_read_only() {
    let backend = backend(&Arc::default());
    let catalog = backend.catalog().borrow().clone();
    assert_eq!(catalog.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), NAMES);
    for tool in &catalog.tools {
        let annotations = tool.definition.to_json().to_value()["annotations"].clone();
        let expected = json!({
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true,
        });
        assert_eq!(annotations, expected, "{}", tool.name);
    }
    insta::assert_snapshot!(definitions(&backend));
}

#[tokio::test]
async fn each_tool_reads_one_resource() {
    let api = Arc::<PreparedApi>::default();
    let backend = backend(&api);
    let check = async |tool: &str, arguments: Value, path: &str| {
        assert_eq!(read(&backend, None, tool, arguments).await, "{}");
        assert_eq!(std::mem::take(&mut *api.requests.lock().expect("no panic")), [path]);
    };
    check("get_credits", json!({}), "credits").await;
    check("get_api_key_info", json!({}), "key").await;
    check("list_models", json!({}), "models").await;
    check("list_api_keys", json!({}), "keys").await;
    check("get_api_key", json!({"keyHash": "f01d"}), "keys/f01d").await;
    check("get_api_key", json!({"keyHash": " f01d\n"}), "keys/f01d").await;
    check("get_api_key", json!({"keyHash": "../credits?a=b#c"}), "keys/..%2Fcredits%3Fa%3Db%23c").await;
    check("get_generation", json!({"generationId": "gen-1_2.3~4"}), "generation?id=gen-1_2.3~4").await;
    check("get_generation", json!({"generationId": "a&b=%ü"}), "generation?id=a%26b%3D%25%C3%BC").await;
}

#[tokio::test]
async fn invalid_arguments_are_explained_and_send_nothing() {
    let api = Arc::<PreparedApi>::default();
    let text = read_all(
        &backend(&api),
        None,
        &[
            ("get_api_key", json!({})),
            ("get_api_key", json!({"keyHash": ""})),
            ("get_api_key", json!({"keyHash": ".."})),
            ("get_api_key", json!({"keyHash": "a b"})),
            ("get_api_key", json!({"keyHash": 7})),
            ("get_generation", json!({"generationId": "gen-1\u{0}"})),
            ("get_generation", json!({"id": "gen-1"})),
        ],
    )
    .await;
    insta::assert_snapshot!(text, @r#"
    > get_api_key {}
    refused: Invalid arguments: missing field `keyHash`

    > get_api_key {"keyHash":""}
    error: keyHash: is empty; expected a `hash` from list_api_keys

    > get_api_key {"keyHash":".."}
    error: keyHash: contains blanks or control characters, or is a relative path; expected a `hash` from list_api_keys

    > get_api_key {"keyHash":"a b"}
    error: keyHash: contains blanks or control characters, or is a relative path; expected a `hash` from list_api_keys

    > get_api_key {"keyHash":7}
    refused: Invalid arguments: /keyHash: invalid type: integer `7`, expected a string

    > get_generation {"generationId":"gen-1\u0000"}
    error: generationId: contains blanks or control characters, or is a relative path; expected the id of a completion, such as gen-1234567890

    > get_generation {"id":"gen-1"}
    refused: Invalid arguments: missing field `generationId`
    "#);
    assert_eq!(ResourceId::parse(&"x".repeat(257)), Err(InvalidId::TooLong));
    assert_eq!(*api.requests.lock().expect("no panic"), Vec::<String>::new());
}

/// The texts that a model reads for each response of the vendor's document.
#[test]
fn documented_responses_have_texts() {
    let examples: Value = serde_json::from_str(EXAMPLES).expect("JSON");
    let mut texts = String::new();
    for resource in resources() {
        for (status, body) in examples[resource.template()].as_object().expect("statuses") {
            let response = response_of(status.parse().expect("a status"), &body.to_string());
            match json_text(&resource, &response) {
                Ok(text) => assert_eq!((status.as_str(), text), ("200", body.to_string())),
                Err(text) => texts += &format!("{text}\n"),
            }
        }
    }
    insta::assert_snapshot!(texts, @"
    OpenRouter answered GET /credits with status 401: Missing Authentication header. Ask the operator to check the API key, which may be wrong, disabled or expired.
    OpenRouter answered GET /credits with status 403: Only management keys can perform this operation. Only a management key can read this: ask the operator whether the configured key is one.
    OpenRouter answered GET /credits with status 500: Internal Server Error. Call again later.
    OpenRouter answered GET /key with status 401: Missing Authentication header. Ask the operator to check the API key, which may be wrong, disabled or expired.
    OpenRouter answered GET /key with status 500: Internal Server Error. Call again later.
    OpenRouter answered GET /models with status 400: Invalid request parameters.
    OpenRouter answered GET /models with status 403: Only management keys can perform this operation. The configured API key may not read this.
    OpenRouter answered GET /models with status 500: Internal Server Error. Call again later.
    OpenRouter answered GET /keys with status 400: Invalid request parameters.
    OpenRouter answered GET /keys with status 401: Missing Authentication header. Ask the operator to check the API key, which may be wrong, disabled or expired.
    OpenRouter answered GET /keys with status 429: Rate limit exceeded. Call again later.
    OpenRouter answered GET /keys with status 500: Internal Server Error. Call again later.
    OpenRouter answered GET /keys/{hash} with status 401: Missing Authentication header. Ask the operator to check the API key, which may be wrong, disabled or expired.
    OpenRouter answered GET /keys/{hash} with status 404: Resource not found. No key has this hash: list_api_keys returns the hashes.
    OpenRouter answered GET /keys/{hash} with status 429: Rate limit exceeded. Call again later.
    OpenRouter answered GET /keys/{hash} with status 500: Internal Server Error. Call again later.
    OpenRouter answered GET /generation with status 401: Missing Authentication header. Ask the operator to check the API key, which may be wrong, disabled or expired.
    OpenRouter answered GET /generation with status 402: Insufficient credits. Add more using https://openrouter.ai/credits. The account or the key has no credits left: get_credits and get_api_key_info show them.
    OpenRouter answered GET /generation with status 404: Resource not found. No completion has this id (`id` of its response, such as gen-1234567890); a new one may take some seconds.
    OpenRouter answered GET /generation with status 429: Rate limit exceeded. Call again later.
    OpenRouter answered GET /generation with status 500: Internal Server Error. Call again later.
    OpenRouter answered GET /generation with status 502: Provider returned error. Call again later.
    OpenRouter answered GET /generation with status 524: Request timed out. Please try again later. Call again later.
    OpenRouter answered GET /generation with status 529: Provider returned error. Call again later.
    ");
}

#[test]
fn other_responses_have_texts() {
    let check = |status: u16, body: &str, expected: Result<&str, &str>| {
        let text = json_text(&OpenRouterResource::Credits, &response_of(status, body));
        assert_eq!(text.as_deref().map_err(String::as_str), expected, "{status} {body}");
    };
    check(200, "", Ok("{}"));
    check(204, " \n", Ok("{}"));
    check(200, "\n {\"a\": 1.50}\n", Ok("{\"a\": 1.50}"));
    check(200, "[]", Ok("[]"));
    let not_json =
        "The response to GET /credits is not JSON. Ask the operator to check the base URL of OpenRouter.";
    for body in ["<!doctype html>", "{\"a\":", "{} {}", &"[".repeat(100_000)] {
        check(200, body, Err(not_json));
    }
    check(
        302,
        "",
        Err(
            "OpenRouter answered GET /credits with status 302. Redirects are not followed: ask the operator to check the base URL of OpenRouter.",
        ),
    );
    check(418, "teapot", Err("OpenRouter answered GET /credits with status 418."));
    check(502, "<html>", Err("OpenRouter answered GET /credits with status 502. Call again later."));
    check(
        500,
        r#"{"error": {"message": "a\n\u001b[31mb  c.", "code": 500}}"#,
        Err("OpenRouter answered GET /credits with status 500: a [31mb c. Call again later."),
    );
    check(
        500,
        r#"{"error": "no"}"#,
        Err("OpenRouter answered GET /credits with status 500. Call again later."),
    );
    let long = json!({"error": {"message": "ü".repeat(1000)}}).to_string();
    let text = json_text(&OpenRouterResource::Credits, &response_of(400, &long)).expect_err("an error");
    assert_eq!(text.matches('ü').count(), 300);
    let limited = OpenRouterResponse { retry_after: Some(7), ..response_of(429, "") };
    let text = json_text(&OpenRouterResource::Keys, &limited).expect_err("an error");
    assert_eq!(text, "OpenRouter answered GET /keys with status 429. Call again after 7 s.");
    let not_utf8 = OpenRouterResponse { body: vec![b'"', 0xff, b'"'].into(), ..response_of(200, "") };
    assert_eq!(json_text(&OpenRouterResource::Credits, &not_utf8), Err(not_json.to_owned()));
}

#[tokio::test]
async fn failed_requests_have_texts() {
    let cause = || std::io::Error::other("10.0.0.7 refused hunter2").into();
    let api = Arc::<PreparedApi>::default();
    *api.responses.lock().expect("no panic") = VecDeque::from([
        Err(OpenRouterError::NoKey(cause())),
        Err(OpenRouterError::Unreachable { reason: "connection refused", cause: cause() }),
        Err(OpenRouterError::Timeout(Duration::from_millis(1500))),
        Err(OpenRouterError::TooLarge(65536)),
        Err(OpenRouterError::NoMemory),
    ]);
    let backend = backend(&api);
    let mut texts = Vec::new();
    for _ in 0..5 {
        texts.push(read(&backend, None, "get_credits", json!({})).await);
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    error: The API key of OpenRouter cannot be read. Ask the operator to check it.
    error: OpenRouter cannot be reached (connection refused). Call again later.
    error: OpenRouter has not answered within 1.5 s. Call again later.
    error: The response of OpenRouter exceeds the limit of 65536 bytes. Ask the operator to raise it.
    error: There is no memory left for the response of OpenRouter. Call again later.
    ");
}
