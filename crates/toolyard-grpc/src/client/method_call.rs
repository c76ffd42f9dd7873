//! A call of a method: arguments become a message, and the messages of the response JSON.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use toolyard_backends::delivery::reserve_copies;
use toolyard_backends::health::ServiceHealth;
use toolyard_core::long_work::WorkAborted;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{
    Call, CallOutput, Client, ClientNotification, ErrorCode, Json, LongWork, Object, ToolError,
};
use toolyard_net::budget::ByteBudget;

use super::delivery::{BegunStream, GrpcDelivery};
use super::status::RequestFault;
use crate::descriptor::{JsonText, MAX_JSON_BYTES, MethodTool, ServiceTools};

/// Size from which messages are not converted on the thread of a connection, in bytes.
const BRIEF_BYTES: usize = 64 * 1024;

/// Bounds of the messages of a stream that a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamBounds {
    /// Maximum number of messages.
    pub messages: usize,
    /// Maximum size of all messages as JSON, in bytes.
    pub bytes: usize,
}

/// The server and the limits of calls of methods.
pub(super) struct MethodCaller {
    pub(super) delivery: Arc<GrpcDelivery>,
    pub(super) health: ServiceHealth,
    pub(super) budget: ByteBudget,
    pub(super) bounds: StreamBounds,
    pub(super) long_work: Option<LongWork>,
}

/// A method of the services of a server.
#[derive(Clone)]
pub(super) struct MethodHandle {
    pub(super) services: Arc<ServiceTools>,
    pub(super) index: usize,
}

/// The messages of a response as JSON.
struct CollectedMessages {
    text: JsonText,
    cut_by: Option<StreamCut>,
}

/// The reason why the rest of a stream is left out.
#[derive(Debug, Clone, Copy)]
enum StreamCut {
    /// It exceeds the bound of this name.
    Bound(&'static str),
    /// It had not ended in time.
    Deadline,
}

impl StreamCut {
    /// Returns the note for the reader of the result.
    fn note(self) -> String {
        match self {
            Self::Bound(name) => {
                format!(
                    "The stream has further messages, which are left out: it exceeds `{name}` of the handler."
                )
            }
            Self::Deadline => {
                "The stream was still open at the deadline: later messages are left out.".to_owned()
            }
        }
    }
}

impl MethodHandle {
    pub(super) fn get(&self) -> Option<&MethodTool> {
        self.services.methods().get(self.index)
    }
}

impl MethodCaller {
    /// Runs a call.
    ///
    /// # Errors
    /// If the arguments do not fit the method, or the server does not answer.
    pub(super) async fn run(&self, call: &Call, handle: &MethodHandle) -> Result<CallOutput, ToolError> {
        let unknown = || ToolError::new(ErrorCode::ToolNotFound, "The service no longer has this method");
        let method = handle.get().ok_or_else(unknown)?;
        let message = self.encoded(call, handle).await?;
        let headers = self.delivery.headers(Some(call)).await?;
        let collected = match method.is_server_streaming() {
            false => {
                let request = |until| self.delivery.unary(method.path(), message.clone(), &headers, until);
                let response = self.delivery.run(call.time_limit(), &self.health, request).await?;
                self.converted(call, handle, response).await.map_err(|fault| fault.into_error(""))?
            }
            true => {
                let begin =
                    |until| self.delivery.begin_stream(method.path(), message.clone(), &headers, until);
                let collect = |stream| self.collect(call, handle, stream);
                self.delivery.run_then(call.time_limit(), &self.health, begin, collect).await?
            }
        };
        self.output(collected).await
    }

    async fn encoded(&self, call: &Call, handle: &MethodHandle) -> Result<Bytes, ToolError> {
        let none = || Object::new().to_json();
        let arguments = call.arguments().cloned().unwrap_or_else(none);
        let encode = |handle: &MethodHandle, arguments: &Json| match handle.get() {
            Some(method) => method.encode(arguments.as_text()).map_err(|error| error.to_string()),
            None => Err(String::new()),
        };
        let encoded = match &self.long_work {
            Some(long_work) if arguments.as_bytes().len() > BRIEF_BYTES => {
                let handle = handle.clone();
                let aborted = |error: WorkAborted| {
                    let text = "The arguments could not be converted";
                    ToolError::new(ErrorCode::ExecutionFailed, text).unsent().caused_by(error)
                };
                long_work.run(call, move |_| encode(&handle, &arguments)).await.map_err(aborted)?
            }
            _ => encode(handle, &arguments),
        };
        encoded.map_err(|problem| ToolError::new(ErrorCode::InvalidArguments, problem).unsent())
    }

    /// Converts the only message of a response.
    async fn converted(
        &self,
        call: &Call,
        handle: &MethodHandle,
        message: Bytes,
    ) -> Result<CollectedMessages, RequestFault> {
        let mut text = JsonText::new(MAX_JSON_BYTES, self.budget.clone());
        self.append(call, handle, message, &mut text).await?;
        Ok(CollectedMessages { text, cut_by: None })
    }

    /// Appends a message to a text. After an error, the text may end with a part of it, or be empty.
    async fn append(
        &self,
        call: &Call,
        handle: &MethodHandle,
        message: Bytes,
        text: &mut JsonText,
    ) -> Result<(), RequestFault> {
        let decode = |handle: &MethodHandle, message: &[u8], text: &mut JsonText| match handle.get() {
            Some(method) => method.decode_into(message, text).map_err(RequestFault::from),
            None => Err(RequestFault::Undecodable(String::new())),
        };
        match &self.long_work {
            Some(long_work) if message.len() > BRIEF_BYTES => {
                let (handle, mut moved) = (handle.clone(), mem::take(text));
                let work = move |_| {
                    let decoded = decode(&handle, &message, &mut moved);
                    (moved, decoded)
                };
                let aborted = |error: WorkAborted| RequestFault::Undecodable(error.to_string());
                let (moved, decoded) = long_work.run(call, work).await.map_err(aborted)?;
                *text = moved;
                decoded
            }
            _ => decode(handle, &message, text),
        }
    }

    /// Collects the messages of a stream up to the bounds and the deadline, and reports each as progress.
    async fn collect(
        &self,
        call: &Call,
        handle: &MethodHandle,
        stream: BegunStream,
    ) -> Result<CollectedMessages, RequestFault> {
        let BegunStream { mut messages, first, cut_at } = stream;
        let mut text = JsonText::new(self.bounds.bytes, self.budget.clone());
        text.push(r#"{"messages":["#);
        let (mut count, mut cut_by, mut next) = (0, None, first);
        while let Some(message) = next {
            if count >= self.bounds.messages {
                cut_by = Some(StreamCut::Bound("maxMessages"));
                break;
            }
            let start = text.len();
            text.push(if count > 0 { "," } else { "" });
            match self.append(call, handle, message, &mut text).await {
                Err(RequestFault::TooLarge(_)) => {
                    text.truncate(start);
                    cut_by = Some(StreamCut::Bound("maxBytes"));
                    break;
                }
                appended => appended?,
            }
            count += 1;
            report_progress(&*call.client, count);
            let Some(received) = by(cut_at, messages.next()).await else {
                cut_by = Some(StreamCut::Deadline);
                break;
            };
            next = received.map_err(|status| self.delivery.fault(status))?;
        }
        text.push(if cut_by.is_some() { r#"],"truncated":true}"# } else { "]}" });
        Ok(CollectedMessages { text, cut_by })
    }

    /// Makes a result of the messages: as text and as structured content.
    async fn output(&self, collected: CollectedMessages) -> Result<CallOutput, ToolError> {
        let invalid = |error| {
            let text = "The response cannot be written as JSON";
            ToolError::new(ErrorCode::ExecutionFailed, text).caused_by(error)
        };
        let json = Json::parse(collected.text.into_bytes()).map_err(invalid)?;
        let mut output = CallOutput::text(json.as_text());
        if let Some(cut) = collected.cut_by {
            let texts = [json.as_text(), &cut.note()].map(text_block);
            output.body.set("content", Json::array(&texts));
        }
        output.body.set(STRUCTURED, json);
        reserve_copies(&self.budget, &mut output, &["content"]).await?;
        Ok(output)
    }
}

/// Returns the result of a future, or `None` if the time comes first.
async fn by<F: Future>(time: Option<Instant>, future: F) -> Option<F::Output> {
    match time {
        Some(time) => timeout_at(time, future).await.ok(),
        None => Some(future.await),
    }
}

fn text_block(text: &str) -> Json {
    Object::new().with("type", Json::string("text")).with("text", Json::string(text)).to_json()
}

/// Reports the number of messages so far.
fn report_progress(client: &dyn Client, messages: usize) {
    if client.listens() {
        let progress = Json::unsigned(messages as u64);
        let text = Json::string(&format!("{messages} messages"));
        let params = Object::new().with("progress", progress).with("message", text);
        client.notify(ClientNotification::Progress(params.into()));
    }
}
