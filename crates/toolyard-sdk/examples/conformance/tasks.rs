//! Tools that may run as tasks. A client without task support waits for their results.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use tokio::try_join;
use toolyard_sdk::{Context, ElicitResult, RegisterError, Server, TaskSupport, Tool, ToolFailure, ToolReply};

use crate::input::Name;

/// Long enough to become a task.
const TASK_DELAY: Duration = Duration::from_millis(200);

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    let optional = |name, description| Tool::new(name, description).task(TaskSupport::Optional);
    let required = |name, description| Tool::new(name, description).task(TaskSupport::Required);
    server
        .tool("greet", "Greets, and is never a task.", greet)?
        .register_tool(optional("slow_compute", "Sleeps."), slow_compute)?
        .register_tool(optional("protocol_error_job", "Fails with an error of the protocol."), break_down)?
        .register_tool(optional("confirm_delete", "Asks before it deletes a file."), confirm_delete)?
        .register_tool(optional("multi_input", "Asks two questions at once."), confirm_twice)?
        .register_tool(required("failing_job", "Fails, and says so in its result."), fail)?
        .register_tool(required("test_tool_with_task", "Asks first, and then takes a while."), ask_first)
}

#[derive(Deserialize, JsonSchema)]
struct GreetArgs {
    /// The person to greet
    name: String,
}

async fn greet(args: GreetArgs) -> String {
    format!("Hello, {}!", args.name)
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// Duration in seconds
    #[schemars(range(min = 0, max = 3600))]
    seconds: f64,
    /// A label for the result
    label: Option<String>,
}

async fn slow_compute(args: Work) -> Result<String, ToolFailure> {
    sleep(Duration::try_from_secs_f64(args.seconds)?).await;
    Ok(format!("{} took {} s.", args.label.as_deref().unwrap_or("It"), args.seconds))
}

async fn fail() -> Result<(), ToolFailure> {
    sleep(5 * TASK_DELAY).await;
    Err(ToolFailure::new("The job failed, as it always does."))
}

async fn break_down() -> Result<(), ToolFailure> {
    sleep(TASK_DELAY).await;
    Err(ToolFailure::protocol(-32603, "The job broke down, as it always does."))
}

#[derive(Deserialize, JsonSchema)]
struct Deletion {
    /// The file to delete
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Consent {
    confirm: bool,
}

async fn confirm_delete(ctx: Context, args: Deletion) -> Result<String, ToolFailure> {
    let file = args.filename;
    match ctx.elicit(format!("Delete {file}?")).await? {
        ElicitResult::Accepted(Consent { confirm: true }) => Ok(format!("{file} would be deleted now.")),
        _ => Ok(format!("{file} stays.")),
    }
}

async fn confirm_twice(ctx: Context) -> Result<String, ToolFailure> {
    let (first, second) = (ctx.elicit::<Consent>("The first?"), ctx.elicit::<Consent>("The second?"));
    let (first, second) = try_join!(first, second)?;
    Ok(format!("The first: {}. The second: {}.", first.action(), second.action()))
}

async fn ask_first(ctx: Context) -> ToolReply {
    let Some(name) = Name::from_answer(&ctx) else { return Name::ask().into() };
    sleep(TASK_DELAY).await;
    ToolReply::new().text(format!("Hello, {name}! This took a while."))
}
