//! Tools that a handler calls while it runs.

use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::sleep;
use toolyard_core::Json;

use super::raw_output::RawOutput;
pub use super::wire::ProgressReport;
use super::wire::{MAX_LINE_BYTES, ToolRequest, ToolResultHeader, WorkerMessage};

/// The tools that one call of a handler may use. Code in the worker decides on the names and the arguments, so that an
/// implementation checks and limits them.
pub trait ToolHost: Send + Sync {
    /// Maximum number of requests that run at the same time. More wait in the worker.
    fn concurrent(&self) -> usize;

    /// Calls a tool. Dropping the future cancels the call.
    ///
    /// # Errors
    /// If the tool fails: an object, whose members become those of the exception.
    fn call(&self, tool: String, arguments: Json) -> BoxFuture<'_, Result<Json, Json>>;

    /// Receives the progress of the handler. It must not block.
    fn progress(&self, report: ProgressReport);

    /// Receives the printed output of the handler once it has ended, also after a failure.
    fn printed(&self, log: &str);
}

/// The result of a request with this id.
type ToolResult = (u64, Result<Json, Json>);

/// The pipes of a worker that runs a call.
pub(super) struct WorkerPipes<'a> {
    pub(super) stdin: &'a mut ChildStdin,
    pub(super) stdout: &'a mut BufReader<ChildStdout>,
    pub(super) raw: &'a mut RawOutput,
    /// Id of the call.
    pub(super) call: u64,
}

impl WorkerPipes<'_> {
    /// Answers the requests of a handler until the worker sends another message, and returns that. Results are written
    /// while requests are read: the worker may do either, and must not wait for the other.
    pub(super) async fn serve(self, tools: &dyn ToolHost) -> io::Result<WorkerMessage> {
        let mut running = FuturesUnordered::new();
        let (mut line, mut results) = (Vec::new(), Vec::new());
        loop {
            tokio::select! {
                biased;
                Some(result) = running.next(), if !running.is_empty() => write_result(&mut results, result)?,
                sent = self.stdin.write(&results), if !results.is_empty() => drop(results.drain(..sent?)),
                read = read_line(self.stdout, &mut line), if running.len() < tools.concurrent().max(1) => {
                    read?;
                    match serde_json::from_slice(&std::mem::take(&mut line))? {
                        WorkerMessage::Tool { call, id, request } if call == self.call => {
                            running.push(answer(tools, id, request));
                        }
                        WorkerMessage::Progress { call, report } if call == self.call => tools.progress(report),
                        message => return Ok(message),
                    }
                }
                never = self.raw.read_on() => match never {},
            }
        }
    }
}

/// Answers a request.
fn answer(tools: &dyn ToolHost, id: u64, request: ToolRequest) -> BoxFuture<'_, ToolResult> {
    Box::pin(async move {
        let result = match request {
            ToolRequest::Sleep { millis } => {
                sleep(Duration::from_millis(millis)).await;
                Ok(Json::null())
            }
            ToolRequest::Call { tool, arguments } => match Json::parse(arguments) {
                Ok(arguments) => tools.call(tool, arguments).await,
                Err(_) => Err(Json::null()),
            },
        };
        (id, result)
    })
}

fn write_result(results: &mut Vec<u8>, (id, result): ToolResult) -> io::Result<()> {
    let is_error = result.is_err();
    let (Ok(body) | Err(body)) = result;
    results.extend(serde_json::to_vec(&ToolResultHeader { id, is_error })?);
    results.push(b'\n');
    results.extend_from_slice(body.as_bytes());
    results.push(b'\n');
    Ok(())
}

/// Reads the rest of a line, without its end. Bytes that were read are kept in `line` if the future is dropped.
async fn read_line(from: &mut BufReader<ChildStdout>, line: &mut Vec<u8>) -> io::Result<()> {
    let left = (MAX_LINE_BYTES + 1).saturating_sub(line.len());
    from.take(left as u64).read_until(b'\n', line).await?;
    match line.pop() {
        Some(b'\n') => Ok(()),
        Some(_) if line.len() >= MAX_LINE_BYTES => Err(io::ErrorKind::InvalidData.into()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
