use std::future::{pending, ready};
use std::sync::Mutex;

use insta::assert_snapshot;
use serde_json::json;

use super::*;

/// A client that answers every request alike, and keeps the last one.
#[derive(Debug)]
struct ScriptedSession {
    answer: Result<Json, InputRequestError>,
    asked: Mutex<Option<InputRequest>>,
}

impl ClientSession for ScriptedSession {
    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        *self.asked.lock().unwrap() = Some(ask);
        ready(self.answer.clone()).boxed()
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        match self.answer {
            Err(InputRequestError::Gone) => ready(()).boxed(),
            _ => pending().boxed(),
        }
    }
}

fn model(answer: Result<&str, InputRequestError>) -> (Arc<ScriptedSession>, SamplingModel) {
    let answer = answer.map(|text| Json::parse(text.to_owned()).unwrap());
    let session = Arc::new(ScriptedSession { answer, asked: Mutex::default() });
    (session.clone(), SamplingModel::new(session, 500))
}

async fn complete(model: &SamplingModel, messages: &[ChatMessage]) -> Result<ChatReply, ModelError> {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    let tool = ChatTool { name: "add".to_owned(), description: "Adds.".to_owned(), parameters };
    model.complete(ChatRequest { messages, tools: &[tool] }).await
}

fn call(id: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: "add".to_owned(), arguments: arguments.to_owned() }
}

#[tokio::test]
async fn conversation_becomes_a_request_for_a_message() {
    let (session, model) =
        model(Ok(r#"{"role":"assistant","content":{"type":"text","text":"Done."},"model":"m"}"#));
    let result =
        |request: &str| ChatMessage::ToolResult { request: request.to_owned(), text: "2".to_owned() };
    let messages = [
        ChatMessage::System("Be brief.".to_owned()),
        ChatMessage::User("Add.".to_owned()),
        ChatMessage::Model {
            text: "Two sums.".to_owned(),
            requests: vec![call("c1", r#"{"a":12345678901234567890.10}"#), call("c2", "{}")],
        },
        result("c1"),
        result("c2"),
        ChatMessage::Model { text: String::new(), requests: vec![call("c3", "{}")] },
        result("c3"),
    ];
    let reply = complete(&model, &messages).await.unwrap();
    assert_eq!(reply, ChatReply { text: "Done.".to_owned(), ..ChatReply::default() });
    let asked = session.asked.lock().unwrap().take().unwrap();
    assert_eq!(asked.kind, InputRequestKind::Sample);
    let lines: Vec<_> = asked
        .params
        .iter()
        .flat_map(|(name, value)| match value.to_items() {
            Ok(items) => items.iter().map(|item| format!("{name}[]: {}", item.as_text())).collect(),
            Err(_) => vec![format!("{name}: {}", value.as_text())],
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    messages[]: {"role":"user","content":{"type":"text","text":"Add."}}
    messages[]: {"role":"assistant","content":[{"type":"text","text":"Two sums."},{"type":"tool_use","id":"c1","name":"add","input":{"a":12345678901234567890.10}},{"type":"tool_use","id":"c2","name":"add","input":{}}]}
    messages[]: {"role":"user","content":[{"type":"tool_result","toolUseId":"c1","content":[{"type":"text","text":"2"}]},{"type":"tool_result","toolUseId":"c2","content":[{"type":"text","text":"2"}]}]}
    messages[]: {"role":"assistant","content":[{"type":"tool_use","id":"c3","name":"add","input":{}}]}
    messages[]: {"role":"user","content":[{"type":"tool_result","toolUseId":"c3","content":[{"type":"text","text":"2"}]}]}
    systemPrompt: "Be brief."
    tools[]: {"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}}}}
    toolChoice: {"mode":"auto"}
    maxTokens: 500
    "#);
}

#[tokio::test]
async fn reply_is_a_text_and_requests() {
    let check = async |answer: &str, expected: Result<(&str, &[RequestedCall]), &str>| {
        let (_, model) = model(Ok(answer));
        let reply = complete(&model, &[]).await.map_err(|error| error.to_string());
        let reply = reply.map(|reply| (reply.text, reply.requests));
        let expected = expected.map(|(text, requests)| (text.to_owned(), requests.to_vec()));
        assert_eq!(reply, expected.map_err(str::to_owned), "{answer}");
    };
    let malformed = Err("the reply of the client's model is malformed");
    let number = r#"{"a":1.10}"#;
    check(r#"{"content":{"type":"text","text":"a"}}"#, Ok(("a", &[]))).await;
    check(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, Ok(("ab", &[]))).await;
    check(
        r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"add","input":{"a":1.10}}]}"#,
        Ok(("a", &[call("1", number)])),
    )
    .await;
    check(
        r#"{"content":{"type":"tool_use","id":"1","name":"add","input":{"a":1.10}}}"#,
        Ok(("", &[call("1", number)])),
    )
    .await;
    check(r#"{"content":{"type":"image","data":"","mimeType":"image/png"}}"#, Ok(("", &[]))).await;
    for answer in [
        "{}",
        "[]",
        r#"{"content":"a"}"#,
        r#"{"content":[1]}"#,
        r#"{"content":{"text":"a"}}"#,
        r#"{"content":{"type":"text"}}"#,
        r#"{"content":{"type":"tool_use","id":"1","name":"add","input":"{}"}}"#,
        r#"{"content":{"type":"tool_use","id":1,"name":"add","input":{}}}"#,
    ] {
        check(answer, malformed).await;
    }
    let calls = [r#"{"type":"tool_use","id":"1","name":"add","input":{}}"#; MAX_REQUESTS + 1].join(",");
    check(&format!(r#"{{"content":[{calls}]}}"#), Err("the reply requests more than 16 calls at once")).await;
    let long = "x".repeat(MAX_REPLY_BYTES);
    check(
        &format!(r#"{{"content":{{"type":"text","text":"{long}"}}}}"#),
        Err("the reply has more than 4194304 bytes"),
    )
    .await;
}

#[tokio::test]
async fn client_that_does_not_answer_is_a_reason() {
    let check = async |error: InputRequestError, expected: &str| {
        let (_, model) = model(Err(error));
        assert_eq!(complete(&model, &[]).await.unwrap_err().to_string(), expected);
    };
    let refusal = Json::parse(r#"{"code":-1,"message":"User rejected sampling request"}"#).unwrap();
    check(
        InputRequestError::Refused(refusal),
        "the model of the client cannot be used: the client refused: User rejected sampling request",
    )
    .await;
    check(InputRequestError::Gone, "the session of the client has ended, and with it the use of its model")
        .await;
    check(InputRequestError::TooLate, "the model of the client did not answer in time").await;
}

#[tokio::test]
async fn model_is_lost_with_the_session() {
    let (_, open) = model(Ok("{}"));
    assert!(open.lost().now_or_never().is_none());
    let (_, ended) = model(Err(InputRequestError::Gone));
    let reason = ended.lost().await.to_string();
    assert_eq!(reason, "the session of the client has ended, and with it the use of its model");
}

#[tokio::test]
async fn long_conversation_is_not_sent() {
    let (session, model) = model(Ok("{}"));
    let messages = [ChatMessage::User("x".repeat(MAX_REQUEST_BYTES))];
    let error = complete(&model, &messages).await.unwrap_err().to_string();
    assert_eq!(error, "the conversation has more than 1000000 bytes, the maximum of requests to a client");
    assert!(session.asked.lock().unwrap().is_none());
}
