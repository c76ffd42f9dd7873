//! Tools that may run as tasks. A client that takes no tasks waits for their results.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use tokio::try_join;
use toolyard_sdk::{Context, Elicited, RegisterError, Reply, Server, TaskSupport, Tool, ToolFailure};

use crate::input::Name;

/// What is done sooner does not become a task.
const A_WHILE: Duration = Duration::from_millis(200);

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    let optional = |name, description| Tool::new(name, description).task(TaskSupport::Optional);
    let required = |name, description| Tool::new(name, description).task(TaskSupport::Required);
    server
        .tool("greet", "Greets, and is never a task.", greet)?
        .register_tool(optional("slow_compute", "Sleeps."), slow_compute)?
        .register_tool(optional("protocol_error_job", "Fails with an error of the protocol."), break_down)?
        .register_tool(optional("confirm_delete", "Asks before it deletes a file."), confirm_delete)?
        .register_tool(optional("multi_input", "Asks two things at once."), confirm_twice)?
        .register_tool(required("failing_job", "Fails, and says so in its result."), fail)?
        .register_tool(required("test_tool_with_task", "Asks first, and then takes a while."), ask_first)
}

#[derive(Deserialize, JsonSchema)]
struct Greeted {
    /// Who is greeted
    name: String,
}

async fn greet(args: Greeted) -> String {
    format!("Hello, {}!", args.name)
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// How long it takes
    #[schemars(range(min = 0, max = 3600))]
    seconds: f64,
    /// What it is called
    label: Option<String>,
}

async fn slow_compute(args: Work) -> Result<String, ToolFailure> {
    sleep(Duration::try_from_secs_f64(args.seconds)?).await;
    Ok(format!("{} took {} s.", args.label.as_deref().unwrap_or("It"), args.seconds))
}

async fn fail() -> Result<(), ToolFailure> {
    sleep(5 * A_WHILE).await;
    Err(ToolFailure::new("The job failed, as it always does."))
}

async fn break_down() -> Result<(), ToolFailure> {
    sleep(A_WHILE).await;
    Err(ToolFailure::protocol(-32603, "The job broke down, as it always does."))
}

#[derive(Deserialize, JsonSchema)]
struct Deletion {
    /// What is deleted
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Consent {
    confirm: bool,
}

async fn confirm_delete(ctx: Context, args: Deletion) -> Result<String, ToolFailure> {
    let file = args.filename;
    match ctx.elicit(format!("Delete {file}?")).await? {
        Elicited::Accepted(Consent { confirm: true }) => Ok(format!("{file} would be deleted now.")),
        _ => Ok(format!("{file} stays.")),
    }
}

async fn confirm_twice(ctx: Context) -> Result<String, ToolFailure> {
    let (first, second) = (ctx.elicit::<Consent>("The first?"), ctx.elicit::<Consent>("The second?"));
    let (first, second) = try_join!(first, second)?;
    Ok(format!("The first: {}. The second: {}.", first.action(), second.action()))
}

async fn ask_first(ctx: Context) -> Reply {
    let Some(name) = Name::answered(&ctx) else { return Name::ask().into() };
    sleep(A_WHILE).await;
    Reply::new().text(format!("Hello, {name}! This took a while."))
}
