//! What the backend does: each tool something else, told by its arguments.

use std::future::pending;

use futures_util::future::join_all;
use serde_json::json;
use toolyard_core::{
    Ask, AskError, Call, Code, Json, LogLevel, Notice, Object, Outcome, Output, Reference, Target, ToolError,
};
use toolyard_mcp::wire::ask_of;

use crate::yard::{Ended, Offered};

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

/// Does what a call says.
pub(crate) async fn run(call: Call) -> Ended {
    match call.target.clone() {
        Target::Tool(name) => tool(&name, call).await,
        Target::Prompt(name) if call.arguments().is_some() => asked(&call).await.map(|_| prompt(&name)),
        Target::Prompt(name) => Ok(prompt(&name)),
        Target::Resource(uri) if &*uri == "mem:gone" => Err(ToolError::new(Code::ResourceNotFound, "gone")),
        Target::Resource(uri) => Ok(object(json!({"contents": [{"uri": *uri, "text": ""}]}))),
        Target::Completion(_) if call.arguments().is_some() => asked(&call).await.map(|_| prompt("")),
        Target::Completion(Reference::Prompt(name)) => Ok(completion(format!("of prompt {name}"))),
        Target::Completion(Reference::Template(uri)) => Ok(completion(format!("of template {uri}"))),
        Target::Task(task) => Err(ToolError::unknown_tool(&task.tool)),
        Target::Function(name) => Err(toolyard_core::function::unknown(&name)),
    }
}

async fn tool(name: &str, call: Call) -> Ended {
    match name {
        "tell" => tell(&call),
        "ask" | "may" | "must" => return asked(&call).await.map(|answers| text(&answers)),
        "try" => return Ok(text(&tried(&call).await)),
        "need" => return Ok(needed(&call)),
        "wait" => pending().await,
        "fail" => return Err(ToolError::new(Code::Unavailable, "It is down")),
        _ => {}
    }
    Ok(text(call.arguments().map_or("", Json::as_text)))
}

pub(crate) fn text(text: &str) -> Outcome {
    Outcome::Done(Output::text(text))
}

pub(crate) fn object(value: serde_json::Value) -> Outcome {
    let body = Json::from_value(&value).to_object().unwrap();
    Outcome::Done(Output { body, is_error: false })
}

fn prompt(name: &str) -> Outcome {
    object(json!({"description": name, "messages": []}))
}

fn completion(value: String) -> Outcome {
    object(json!({"completion": {"values": [value]}}))
}

/// Says how far it is, twice, and a line of log at each level.
fn tell(call: &Call) {
    let progress =
        |number| call.client.notify(Notice::Progress(Object::new().with("progress", Json::integer(number))));
    progress(1);
    for level in LogLevel::ALL {
        let params = Object::new().with("level", Json::string(level.as_str())).with("data", Json::null());
        call.client.notify(Notice::Log(params));
    }
    progress(2);
}

/// The questions that the arguments hold: `{"ask": [[a round], [another one]]}`.
fn rounds(call: &Call) -> Vec<Vec<Ask>> {
    let arguments = call.arguments().map(|arguments| arguments.to_object().unwrap()).unwrap_or_default();
    let rounds = arguments.get("ask").map(|rounds| rounds.to_items().unwrap()).unwrap_or_default();
    rounds
        .iter()
        .map(|round| round.to_items().unwrap().iter().map(|ask| ask_of(ask).unwrap()).collect())
        .collect()
}

/// Asks all questions of a round at once; one round after the other.
async fn answers(call: &Call) -> Vec<Result<Json, AskError>> {
    let mut answers = Vec::new();
    for round in rounds(call) {
        answers.extend(join_all(round.into_iter().map(|ask| call.client.ask(ask))).await);
    }
    answers
}

/// Asks, and fails where an answer fails.
async fn asked(call: &Call) -> Result<String, ToolError> {
    let answers = answers(call).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(answers.iter().map(Json::as_text).collect::<Vec<_>>().join(" "))
}

/// Asks, and says what came of it.
async fn tried(call: &Call) -> String {
    let word = |answer: Result<Json, AskError>| match answer {
        Ok(answer) => answer.as_text().to_owned(),
        Err(error) => format!("({error})"),
    };
    answers(call).await.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Ends with what the argument `need` says until there is an answer to all of it, then says what it was given.
fn needed(call: &Call) -> Outcome {
    let arguments = call.arguments().unwrap().to_object().unwrap();
    let rounds = arguments.get("need").unwrap().to_items().unwrap();
    let state = call.params.get_str("requestState").unwrap_or_default().into_owned();
    let round = state.rsplit('.').next().and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
    let given = call.params.get("inputResponses").map_or("nothing", Json::as_text);
    match rounds.get(round) {
        Some(requests) => Outcome::NeedsInput(
            Object::new()
                .with("resultType", Json::string("input_required"))
                .with("inputRequests", requests.clone())
                .with("requestState", Json::string(&format!("{}{}", prefix(&arguments), round + 1))),
        ),
        None => text(&format!("{given} with {state}")),
    }
}

/// What the states begin with.
fn prefix(arguments: &Object) -> String {
    arguments.get_str("prefix").unwrap_or_default().into_owned()
}
