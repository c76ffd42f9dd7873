//! The tools for subagents and whiteboards.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use crate::error::SubagentError;
use crate::record::SubagentOwner;
use crate::resources;
use crate::subagents::{NewSubagent, Subagents};
use crate::texts;

/// Names of the tools, as agents know them.
pub const SPAWN: &str = "spawn_subagent";
/// See [`SPAWN`].
pub const CANCEL: &str = "cancel_subagent";
/// See [`SPAWN`].
pub const LIST: &str = "list_subagents";
/// See [`SPAWN`].
pub const WHITEBOARD_WRITE: &str = "whiteboard_write";
/// See [`SPAWN`].
pub const WHITEBOARD_READ: &str = "whiteboard_read";
/// See [`SPAWN`].
pub const WHITEBOARD_LIST: &str = "whiteboard_list";
/// See [`SPAWN`].
pub const WHITEBOARD_DELETE: &str = "whiteboard_delete";

/// Names of the tools that a subagent does not have: it has a whiteboard of its own.
pub const NAMES: [&str; 7] =
    [SPAWN, CANCEL, LIST, WHITEBOARD_WRITE, WHITEBOARD_READ, WHITEBOARD_LIST, WHITEBOARD_DELETE];

const ABOUT_SPAWN: &str = "\
Starts a subagent that works on a task in the background with your tools, and returns its id at once. Use it for a task \
with many steps whose details you need not see. It knows only what the description and the context say.";

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SpawnArgs {
    /// Detailed instructions: the goal, the steps, and the form of the result
    description: String,
    /// Data that the subagent needs, or keys of working memory
    #[serde(default)]
    context: Option<String>,
    /// 10 by default
    #[serde(default, alias = "timeoutMinutes")]
    timeout_minutes: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct TaskArgs {
    /// Id of the subagent
    #[serde(alias = "taskId")]
    task_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BoardArgs {
    /// Id of a subagent, or any name
    #[serde(alias = "boardId")]
    board_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BoardKeyArgs {
    /// Id of a subagent, or any name
    #[serde(alias = "boardId")]
    board_id: String,
    /// Such as "plan"
    key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BoardWriteArgs {
    /// Id of a subagent, or any name
    #[serde(alias = "boardId")]
    board_id: String,
    /// Such as "plan"
    key: String,
    /// Text or JSON
    value: Value,
}

/// Adds the tools and the resources to a server.
///
/// # Errors
/// Returns an error if the server already has a tool or a resource of one of these names.
pub fn add(server: Server, subagents: &Subagents) -> Result<Server, RegisterError> {
    let [to_spawn, to_cancel, to_list] = [(); 3].map(|()| subagents.clone());
    let server = server
        .register_tool(spawn_tool(), async move |context: Context, args: SpawnArgs| {
            spawn(&to_spawn, &context, args).await
        })?
        .register_tool(cancel_tool(), async move |context: Context, args: TaskArgs| {
            let id = args.task_id.trim();
            let cancelled = to_cancel.cancel(&owner(&context), id).await.map_err(SubagentError::Store)?;
            Ok::<_, ToolFailure>(texts::cancelled(id, cancelled))
        })?
        .register_tool(list_tool(), async move |context: Context| {
            let records = to_list.list(&owner(&context)).await.map_err(SubagentError::Store)?;
            Ok::<_, ToolFailure>(texts::list(&records))
        })?;
    resources::add(add_whiteboards(server, subagents)?, subagents)
}

fn add_whiteboards(server: Server, subagents: &Subagents) -> Result<Server, RegisterError> {
    let [to_write, to_read, to_list, to_delete] = [(); 4].map(|()| subagents.boards().clone());
    server
        .register_tool(board_tool(WHITEBOARD_WRITE), async move |context: Context, args: BoardWriteArgs| {
            let value = texts::board_value(&args.value);
            to_write.write(&owner(&context), &args.board_id, &args.key, &value)?;
            Ok::<_, ToolFailure>(texts::written(&args.key))
        })?
        .register_tool(board_tool(WHITEBOARD_READ), async move |context: Context, args: BoardKeyArgs| {
            let value = to_read.read(&owner(&context), &args.board_id, &args.key);
            value.unwrap_or_else(|| texts::no_key(&args.key))
        })?
        .register_tool(board_tool(WHITEBOARD_LIST), async move |context: Context, args: BoardArgs| {
            texts::board_list(&to_list.list(&owner(&context), &args.board_id))
        })?
        .register_tool(board_tool(WHITEBOARD_DELETE), async move |context: Context, args: BoardKeyArgs| {
            texts::deleted(&args.key, to_delete.delete(&owner(&context), &args.board_id, &args.key))
        })
}

pub(crate) fn owner(context: &Context) -> SubagentOwner {
    SubagentOwner::of(context.caller())
}

impl From<SpawnArgs> for NewSubagent {
    fn from(args: SpawnArgs) -> Self {
        let SpawnArgs { description, context, timeout_minutes } = args;
        // An invalid number is out of range.
        let timeout =
            timeout_minutes.map(|minutes| Duration::try_from_secs_f64(minutes * 60.0).unwrap_or_default());
        Self { description, context, timeout }
    }
}

async fn spawn(subagents: &Subagents, context: &Context, args: SpawnArgs) -> Result<String, ToolFailure> {
    let started = subagents.start(context.call(), args.into()).await?;
    Ok(texts::started(&started))
}

fn spawn_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    Tool::new(SPAWN, ABOUT_SPAWN).annotations(hints)
}

fn cancel_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    Tool::new(CANCEL, "Cancels a running subagent.").annotations(hints)
}

fn list_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(LIST, "Lists your subagents with their states, progress and results.").annotations(hints)
}

fn board_tool(name: &'static str) -> Tool {
    let about = match name {
        WHITEBOARD_WRITE => "Writes a value on a whiteboard, which you share with the subagent of its id.",
        WHITEBOARD_READ => "Reads a value from a whiteboard.",
        WHITEBOARD_LIST => "Lists the keys on a whiteboard, with the beginnings of their values.",
        _ => "Removes a key from a whiteboard.",
    };
    let is_read = name == WHITEBOARD_READ || name == WHITEBOARD_LIST;
    let hints = ToolAnnotations::new().read_only(is_read).open_world(false);
    let hints = if is_read { hints } else { hints.destructive(true).idempotent(true) };
    Tool::new(name, about).annotations(hints)
}
