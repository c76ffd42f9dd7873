//! Small arguments for a schema whose validation branches at each of its 31 levels, and large ones for 300
//! alternatives.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::AttackTarget;
use crate::hostile::server;

/// Number of numbers in the large arguments: 1 MB of text.
const NUMBERS: usize = 500_000;

/// The schema of the tool [`server::FORKS`].
pub(in crate::hostile) fn forks() -> Value {
    let definitions = (0..31).map(|level| {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        let definition = if level < 30 { json!({"anyOf": [next, next]}) } else { json!({"type": "integer"}) };
        (level.to_string(), definition)
    });
    let definitions: serde_json::Map<String, Value> = definitions.collect();
    json!({"type": "object", "properties": {"value": {"$ref": "#/$defs/0"}}, "$defs": definitions})
}

/// The schema of the tool [`server::CHOICES`].
pub(in crate::hostile) fn choices() -> Value {
    let choice = |length: usize| json!({"items": {"type": "string", "minLength": length}});
    let choices: Vec<Value> = (0..300).map(choice).collect();
    json!({"type": "object", "properties": {"value": {"anyOf": choices}}})
}

/// The requests, built once: clients on the same thread wait for responses.
static REQUESTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let numbers = vec!["0"; NUMBERS].join(",");
    let arguments =
        [(server::FORKS, r#""no integer""#.to_owned()), (server::CHOICES, format!("[{numbers}]"))];
    arguments.map(|(tool, value)| {
        let params = format!(r#"{{"name":"{tool}","arguments":{{"value":{value}}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    })
});

pub(in crate::hostile) async fn attempt(target: &AttackTarget) -> anyhow::Result<()> {
    let [small, large] = &*REQUESTS;
    tokio::try_join!(post(target, small), post(target, large))?;
    target.completed();
    Ok(())
}

/// Sends a request and waits for the response.
async fn post(target: &AttackTarget, body: &str) -> anyhow::Result<()> {
    let mut connection = TcpStream::connect(target.gateway).await?;
    connection.write_all(target.request_head(body.len()).as_bytes()).await?;
    connection.write_all(body.as_bytes()).await?;
    connection.read_u8().await?;
    Ok(())
}
