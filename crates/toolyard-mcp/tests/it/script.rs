//! The behaviour of the backend: each tool does something else, controlled by its arguments.

use std::future::pending;

use futures_util::future::join_all;
use serde_json::json;
use toolyard_core::{
    Call, CallOutput, CallTarget, ClientNotification, CompletionReference, ErrorCode, InputRequest,
    InputRequestError, Json, LogLevel, Object, Outcome, ToolError,
};
use toolyard_mcp::wire::parse_ask;

use crate::test_gateway::{Ended, Offered};

pub(crate) const OFFERED: Offered = Offered {
    tools: &[
        r#"{"name":"echo","inputSchema":{"type":"object"}}"#,
        r#"{"name":"strict","inputSchema":{"type":"object","required":["n"]}}"#,
        r#"{"name":"tell"}"#,
        r#"{"name":"ask"}"#,
        r#"{"name":"try"}"#,
        r#"{"name":"need"}"#,
        r#"{"name":"wait"}"#,
        r#"{"name":"fail"}"#,
        r#"{"name":"may","execution":{"taskSupport":"optional"}}"#,
        r#"{"name":"must","execution":{"taskSupport":"required"}}"#,
    ],
    prompts: &[r#"{"name":"greet"}"#],
    resources: &[r#"{"uri":"mem:one","name":"one"}"#, r#"{"uri":"mem:gone","name":"gone"}"#],
    templates: &[r#"{"uriTemplate":"file:{id}","name":"file"}"#],
};

/// Runs a call.
pub(crate) async fn run(call: Call) -> Ended {
    match call.target.clone() {
        CallTarget::Tool(name) => tool(&name, call).await,
        CallTarget::Prompt(name) if call.arguments().is_some() => ask_all(&call).await.map(|_| prompt(&name)),
        CallTarget::Prompt(name) => Ok(prompt(&name)),
        CallTarget::Resource(uri) if &*uri == "mem:gone" => {
            Err(ToolError::new(ErrorCode::ResourceNotFound, "gone"))
        }
        CallTarget::Resource(uri) => Ok(object(json!({"contents": [{"uri": *uri, "text": ""}]}))),
        CallTarget::Completion(_) if call.arguments().is_some() => ask_all(&call).await.map(|_| prompt("")),
        CallTarget::Completion(CompletionReference::Prompt(name)) => {
            Ok(completion(format!("of prompt {name}")))
        }
        CallTarget::Completion(CompletionReference::Template(uri)) => {
            Ok(completion(format!("of template {uri}")))
        }
        CallTarget::Task(task) => Err(ToolError::unknown_tool(&task.tool)),
        CallTarget::Function(name) => Err(toolyard_core::function::unknown(&name)),
    }
}

async fn tool(name: &str, call: Call) -> Ended {
    match name {
        "tell" => tell(&call),
        "ask" | "may" | "must" => return ask_all(&call).await.map(|answers| text(&answers)),
        "try" => return Ok(text(&try_all(&call).await)),
        "need" => return Ok(need_input(&call)),
        "wait" => pending().await,
        "fail" => return Err(ToolError::new(ErrorCode::Unavailable, "It is down")),
        _ => {}
    }
    Ok(text(call.arguments().map_or("", Json::as_text)))
}

pub(crate) fn text(text: &str) -> Outcome {
    Outcome::Done(CallOutput::text(text))
}

pub(crate) fn object(value: serde_json::Value) -> Outcome {
    let body = Json::from_value(&value).to_object().unwrap();
    Outcome::Done(CallOutput { body, is_error: false })
}

fn prompt(name: &str) -> Outcome {
    object(json!({"description": name, "messages": []}))
}

fn completion(value: String) -> Outcome {
    object(json!({"completion": {"values": [value]}}))
}

/// Sends two progress notifications, and a log message at each level in between.
fn tell(call: &Call) {
    let progress = |number| {
        call.client.notify(ClientNotification::Progress(
            Object::new().with("progress", Json::integer(number)).into(),
        ))
    };
    progress(1);
    for level in LogLevel::ALL {
        let params = Object::new().with("level", Json::string(level.as_str())).with("data", Json::null());
        call.client.notify(ClientNotification::Log(params.into()));
    }
    progress(2);
}

/// Returns the questions of the arguments: `{"ask": [[a round], [another one]]}`.
fn rounds(call: &Call) -> Vec<Vec<InputRequest>> {
    let arguments = call.arguments().map(|arguments| arguments.to_object().unwrap()).unwrap_or_default();
    let rounds = arguments.get("ask").map(|rounds| rounds.to_items().unwrap()).unwrap_or_default();
    rounds
        .iter()
        .map(|round| round.to_items().unwrap().iter().map(|ask| parse_ask(ask).unwrap()).collect())
        .collect()
}

/// Asks the questions of a round at once; one round after the other.
async fn answers(call: &Call) -> Vec<Result<Json, InputRequestError>> {
    let mut answers = Vec::new();
    for round in rounds(call) {
        answers.extend(join_all(round.into_iter().map(|ask| call.client.ask(ask))).await);
    }
    answers
}

/// Asks, and fails if an answer fails.
async fn ask_all(call: &Call) -> Result<String, ToolError> {
    let answers = answers(call).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(answers.iter().map(Json::as_text).collect::<Vec<_>>().join(" "))
}

/// Asks, and returns the answers and errors.
async fn try_all(call: &Call) -> String {
    let word = |answer: Result<Json, InputRequestError>| match answer {
        Ok(answer) => answer.as_text().to_owned(),
        Err(error) => format!("({error})"),
    };
    answers(call).await.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Asks for the input of the argument `need` until all of it was answered, then returns the last responses.
fn need_input(call: &Call) -> Outcome {
    let arguments = call.arguments().unwrap().to_object().unwrap();
    let rounds = arguments.get("need").unwrap().to_items().unwrap();
    let state = call.params.get_str("requestState").unwrap_or_default().into_owned();
    let round = state.rsplit('.').next().and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
    let responses = call.params.get("inputResponses").map_or("nothing", Json::as_text);
    match rounds.get(round) {
        Some(requests) => Outcome::NeedsInput(
            Object::new()
                .with("resultType", Json::string("input_required"))
                .with("inputRequests", requests.clone())
                .with("requestState", Json::string(&format!("{}{}", prefix(&arguments), round + 1))),
        ),
        None => text(&format!("{responses} with {state}")),
    }
}

/// Returns the prefix of states.
fn prefix(arguments: &Object) -> String {
    arguments.get_str("prefix").unwrap_or_default().into_owned()
}
