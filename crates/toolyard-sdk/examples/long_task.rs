//! A long-running tool: it reports progress, writes a log, and can be cancelled. A client that supports tasks
//! gets a task and asks for the result later; the handler is the same.
//!
//! ```sh
//! cargo run -p toolyard-sdk --example long_task                     # on standard input and output
//! cargo run -p toolyard-sdk --example long_task -- 127.0.0.1:8080   # on http://127.0.0.1:8080/mcp
//! ```

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, Result, Server, TaskSupport, Tool};

#[derive(Deserialize, JsonSchema)]
struct CountArgs {
    /// The last number to count
    #[schemars(range(min = 1, max = 1000))]
    to: u32,
    /// Milliseconds between two numbers
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    pause: u64,
}

/// A running count. If its client cancels it or disconnects, the handler's future is dropped at the current `await`,
/// and this value with it: the place to release resources.
struct RunningCount {
    cancelled: Arc<AtomicU32>,
    completed: bool,
}

impl Drop for RunningCount {
    fn drop(&mut self) {
        if !self.completed {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn count(ctx: Context, args: CountArgs, cancelled: Arc<AtomicU32>) -> String {
    let mut running = RunningCount { cancelled, completed: false };
    ctx.info(format!("counting to {}", args.to));
    for number in 1..=args.to {
        tokio::time::sleep(Duration::from_millis(args.pause)).await;
        ctx.progress(f64::from(number), Some(f64::from(args.to)), "counting");
    }
    running.completed = true;
    format!("counted to {}", args.to)
}

#[tokio::main]
async fn main() -> Result<()> {
    let cancelled = Arc::new(AtomicU32::new(0));
    let counter = cancelled.clone();
    let tool = Tool::new("count", "Counts to a number, slowly.").task(TaskSupport::Optional);
    let server = Server::new("counter", "1.0.0")
        .register_tool(tool, move |ctx: Context, args: CountArgs| count(ctx, args, cancelled))?
        .tool("cancelled", "Tells how many counts were cancelled.", move || {
            format!("cancelled so far: {}", counter.load(Ordering::Relaxed))
        })?;
    support::serve(server).await
}
