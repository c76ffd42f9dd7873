//! A tool for each feature.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, sleep};
use toolyard_sdk::{Context, RegisterError, Resource, SampleRequest, Server, TaskSupport, Tool, ToolFailure};

const NOTE: &str = "matrix://note";
const WORDS: [&str; 3] = ["paris", "park", "party"];

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    let (grown, touched) = (server.handle(), server.handle());
    let ended = EndedCalls::default();
    let report = ended.clone();
    let job = Tool::new("job", "Runs as a task.").task(TaskSupport::Optional);
    server
        .tool("echo", "Says what it is told.", async |args: Text| args.text)?
        .tool("steps", "Reports its progress.", steps)?
        .tool("wait", "Never ends.", async move |ctx: Context, args: Key| wait(ctx, args.key, &ended).await)?
        .tool("ended", "Lists the cancelled waits.", async move || report.keys())?
        .tool("ask", "Asks the user.", ask)?
        .tool("sample", "Asks the model.", sample)?
        .tool("roots", "Asks for folders.", roots)?
        .tool("log", "Logs a text.", async |ctx: Context, args: Text| {
            ctx.info(args.text);
            "Logged."
        })?
        .tool("touch", "Changes a resource.", async move || {
            touched.resource_updated(NOTE);
            "Touched."
        })?
        .tool("grow", "Adds a tool.", async move |args: Name| {
            grown.add_tool(Tool::new(args.name, "Came later."), async || "grown")?;
            Ok::<_, RegisterError>("There is one tool more.")
        })?
        .register_tool(job, work)?
        .resource(Resource::new(NOTE, "A note").mime_type("text/plain"), async || "a note")?
        .prompt("greeting", "Greets a place.", async |args: Place| format!("Greet {}.", args.place))?
        .complete_prompt("greeting", "place", async |typed: String| {
            WORDS.into_iter().filter(|word| word.starts_with(&typed)).collect::<Vec<_>>()
        })
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    place: String,
}

async fn steps(ctx: Context) -> &'static str {
    for step in [1.0, 2.0, 3.0] {
        ctx.progress(step, Some(3.0), None);
    }
    "All steps are done."
}

/// The keys of the dropped calls.
#[derive(Clone, Default)]
struct EndedCalls(Arc<Mutex<Vec<String>>>);

impl EndedCalls {
    fn keys(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join(" ")
    }
}

/// Records the end of its call.
struct CallGuard {
    key: String,
    ended: EndedCalls,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let key = std::mem::take(&mut self.key);
        self.ended.0.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }
}

async fn wait(ctx: Context, key: String, ended: &EndedCalls) -> &'static str {
    let _running = CallGuard { key, ended: ended.clone() };
    ctx.progress(1.0, Some(2.0), None);
    pending().await
}

async fn ask(ctx: Context) -> Result<String, ToolFailure> {
    let answer = ctx.elicit::<Name>("Who are you?").await?;
    Ok(answer.accepted().map_or_else(|| "anonymous".to_owned(), |user| user.name))
}

async fn sample(ctx: Context) -> Result<String, ToolFailure> {
    Ok(ctx.sample(SampleRequest::new().user("Who are you?").max_tokens(100)).await?.text())
}

async fn roots(ctx: Context) -> Result<String, ToolFailure> {
    let folders = ctx.roots().await?.into_iter().map(|root| root.uri);
    Ok(folders.collect::<Vec<_>>().join(" "))
}

/// Long enough to become a task if the client supports tasks.
async fn work() -> &'static str {
    sleep(Duration::from_millis(300)).await;
    "The job is done."
}
