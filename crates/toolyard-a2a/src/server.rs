//! The gateway as an agent, whose skills are tools.
//!
//! - [`card`]: the agent card;
//! - [`skill`]: the tool and its arguments for a message;
//! - [`tasks`]: the tasks of callers, and their runs;
//! - [`events`]: the events of a task, for streams;
//! - `list`: lists of tasks;
//! - `push`, `push_configs`: notifications of the changes of tasks;
//! - [`result`]: results of tools as artifacts.
//!
//! HTTP and the authentication of callers are not part of this: see `toolyard-server`.

pub mod card;
pub mod events;
mod list;
mod push;
mod push_configs;
pub mod result;
pub mod skill;
pub mod tasks;

use std::any::Any;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_core::{Caller, Gateway};
use toolyard_manifest::A2aSettings;

use self::list::{ListParams, TaskQuery};
use self::push::ConfigParams;
use self::skill::SkillCall;
use self::tasks::ServedTasks;
pub use self::tasks::TaskClaim;
use crate::client::AgentClient;
use crate::wire::message::Message;
use crate::wire::push::PushConfig;
use crate::wire::rpc::{self, Method, RpcError, code};
use crate::wire::task::Task;
use crate::wire::{ProtocolVersion, or_default};

/// The gateway as an agent. Clones share its tasks.
#[derive(Clone)]
pub struct A2aServer {
    settings: Arc<A2aSettings>,
    tasks: ServedTasks,
}

/// A request.
pub struct A2aRequest<'a> {
    /// Caller with its rights.
    pub caller: Caller,
    /// Origin of the calls, such as the head of the request.
    pub origin: Option<Arc<dyn Any + Send + Sync>>,
    /// Value of the header `A2A-Version`.
    pub version: Option<&'a str>,
    /// Body of the request.
    pub body: &'a [u8],
}

/// The answer to a request.
pub enum A2aReply {
    /// Text of a response.
    Response(String),
    /// Texts of responses, each of which is an event of a stream.
    Events(BoxStream<'static, String>),
}

/// The parameters of a message.
#[derive(Deserialize)]
struct MessageParams {
    message: Message,
    #[serde(default, deserialize_with = "or_default")]
    configuration: MessageConfiguration,
    #[serde(default, deserialize_with = "or_default")]
    metadata: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MessageConfiguration {
    return_immediately: Option<bool>,
    history_length: Option<usize>,
    task_push_notification_config: Option<PushConfig>,
}

/// The parameters that name a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    id: String,
    #[serde(default)]
    history_length: Option<usize>,
}

impl A2aServer {
    /// Returns the agent of a gateway. `client` sends notifications.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>, settings: A2aSettings, client: AgentClient) -> Self {
        let settings = Arc::new(settings);
        Self { tasks: ServedTasks::new(gateway, settings.clone(), client), settings }
    }

    /// Returns the text of the agent card. `url` is that of the endpoint, unless the settings have one.
    #[must_use]
    pub fn card(&self, url: &str, version: &str, requires_key: bool) -> String {
        card::text(&self.settings, url, version, requires_key)
    }

    /// Answers a request.
    pub async fn answer(&self, request: A2aRequest<'_>) -> A2aReply {
        let message: Value = match serde_json::from_slice(request.body) {
            Ok(message) => message,
            Err(error) => {
                let error = RpcError::new(code::PARSE_ERROR, format!("the body is not JSON: {error}"));
                return A2aReply::Response(rpc::response(&Value::Null, Err(error)));
            }
        };
        let id = message.get("id").cloned().unwrap_or_default();
        match self.run(&request, &id, message).await {
            Ok(reply) => reply,
            Err(error) => A2aReply::Response(rpc::response(&id, Err(error))),
        }
    }

    /// Starts the task of a message that has arrived otherwise, such as on a message bus.
    ///
    /// # Errors
    /// If the message names no skill or has no arguments for it, or if the caller has too many tasks.
    pub fn start_task(&self, caller: &Caller, message: Message) -> Result<TaskClaim, RpcError> {
        let call = SkillCall::of_message(&self.settings.skills, &message, &Map::new())?;
        self.tasks.start(caller, None, call, message)
    }

    /// Cancels a task of a caller.
    ///
    /// # Errors
    /// If the caller has none with this id, or it has ended.
    pub fn cancel_task(&self, caller: &Caller, id: &str) -> Result<Task, RpcError> {
        self.tasks.cancel(caller, id)
    }

    /// Ends the running tasks.
    pub async fn stop(&self) {
        self.tasks.stop().await;
    }

    async fn run(
        &self,
        request: &A2aRequest<'_>,
        id: &Value,
        mut message: Value,
    ) -> Result<A2aReply, RpcError> {
        let is_valid = message.get("jsonrpc") == Some(&json!("2.0")) && (id.is_string() || id.is_number());
        let name = message.get("method").and_then(Value::as_str).filter(|_| is_valid).ok_or_else(|| {
            RpcError::new(code::INVALID_REQUEST, "expected a JSON-RPC 2.0 request with `id` and `method`")
        })?;
        let method = method(name, request.version)?;
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let caller = &request.caller;
        let reply = |result: Value| Ok(A2aReply::Response(rpc::response(id, Ok(result))));
        match method {
            Method::SendMessage | Method::SendStreamingMessage => {
                let params: MessageParams = parsed(params)?;
                let MessageConfiguration { return_immediately, history_length, .. } = params.configuration;
                let claim = self.start(request, params)?;
                if method == Method::SendStreamingMessage {
                    return Ok(events_of(id, claim, history_length));
                }
                let task = match return_immediately {
                    Some(true) => claim.now(),
                    _ => claim.at_rest().await,
                };
                reply(json!({ "task": shown(task, history_length) }))
            }
            Method::GetTask => {
                let TaskParams { id: task, history_length } = parsed(params)?;
                reply(json!(shown(self.tasks.find(caller, &task)?.now(), history_length)))
            }
            Method::ListTasks => {
                let params = if params.is_null() { ListParams::default() } else { parsed(params)? };
                let query = TaskQuery::new(params)?;
                reply(self.tasks.list(caller, &query).to_json())
            }
            Method::CancelTask => {
                let TaskParams { id: task, history_length } = parsed(params)?;
                reply(json!(shown(self.tasks.cancel(caller, &task)?, history_length)))
            }
            Method::CreatePushConfig => {
                let config = self.tasks.checked_push(parsed(params)?)?;
                reply(push::shown(&self.tasks.add_push(caller, config)?))
            }
            Method::GetPushConfig => {
                let ConfigParams { task_id, id } = parsed(params)?;
                reply(push::shown(&self.tasks.push(caller, &task_id, &id)?))
            }
            Method::ListPushConfigs => {
                let ConfigParams { task_id, .. } = parsed(params)?;
                let configs = self.tasks.pushes(caller, &task_id)?;
                let configs: Vec<_> = configs.iter().map(push::shown).collect();
                reply(json!({"configs": configs, "nextPageToken": ""}))
            }
            Method::DeletePushConfig => {
                let ConfigParams { task_id, id } = parsed(params)?;
                self.tasks.remove_push(caller, &task_id, &id)?;
                reply(json!({}))
            }
            Method::SubscribeToTask => {
                let TaskParams { id: task, history_length } = parsed(params)?;
                let claim = self.tasks.find(caller, &task)?;
                if claim.now().status.state.is_final() {
                    return Err(RpcError::new(
                        code::UNSUPPORTED_OPERATION,
                        "the task has ended: use GetTask",
                    ));
                }
                Ok(events_of(id, claim, history_length))
            }
        }
    }

    fn start(&self, request: &A2aRequest<'_>, params: MessageParams) -> Result<TaskClaim, RpcError> {
        let MessageParams { message, configuration, metadata } = params;
        let push = configuration.task_push_notification_config;
        let push = push.map(|config| self.tasks.checked_push(config)).transpose()?;
        if !message.task_id.is_empty() {
            self.tasks.find(&request.caller, &message.task_id)?;
            let reason = "a task takes one message: send another one without `taskId`";
            return Err(RpcError::new(code::UNSUPPORTED_OPERATION, reason));
        }
        let call = SkillCall::of_message(&self.settings.skills, &message, &metadata)?;
        let claim = self.tasks.start(&request.caller, request.origin.clone(), call, message)?;
        if let Some(config) = push {
            self.tasks.add_push(&request.caller, PushConfig { task_id: claim.now().id, ..config })?;
        }
        Ok(claim)
    }
}

/// Returns the method of a name.
fn method(name: &str, version: Option<&str>) -> Result<Method, RpcError> {
    let wrong_version = |version: &str| {
        RpcError::new(
            code::VERSION_NOT_SUPPORTED,
            format!("A2A {version} is not spoken here: use 1.0, and its names of methods"),
        )
    };
    let version = version.map(str::trim).filter(|version| !version.is_empty());
    if let Some(other) =
        version.filter(|version| ProtocolVersion::parse(version) != Some(ProtocolVersion::V1))
    {
        return Err(wrong_version(other.get(..20).unwrap_or(other)));
    }
    match Method::parse(name) {
        Some((method, ProtocolVersion::V1)) => Ok(method),
        Some((_, ProtocolVersion::V03)) => Err(wrong_version("0.3")),
        None if name == "GetExtendedAgentCard" => {
            Err(RpcError::new(code::UNSUPPORTED_OPERATION, format!("{name} is not supported")))
        }
        None => Err(RpcError::new(code::METHOD_NOT_FOUND, "no such method")),
    }
}

fn parsed<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::new(code::INVALID_PARAMS, format!("invalid parameters: {error}")))
}

/// Returns a task with at most so many messages of its history.
fn shown(mut task: Task, history: Option<usize>) -> Task {
    if let Some(limit) = history {
        let excess = task.history.len().saturating_sub(limit);
        task.history.drain(..excess);
    }
    task
}

/// Returns the events of a task as responses with the id of their request.
fn events_of(id: &Value, claim: TaskClaim, history: Option<usize>) -> A2aReply {
    let id = id.clone();
    let events = events::follow(claim, history);
    A2aReply::Events(events.map(move |event| rpc::response(&id, Ok(json!(event)))).boxed())
}

#[cfg(test)]
mod tests;
