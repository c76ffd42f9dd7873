//! A call of a method: arguments become a message, and the messages of the response JSON.

use std::sync::Arc;

use bytes::Bytes;
use toolyard_backends::delivery::reserve_copies;
use toolyard_backends::health::ServiceHealth;
use toolyard_core::long_work::WorkAborted;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{
    Call, CallOutput, Client, ClientNotification, ErrorCode, Json, LongWork, Object, ToolError,
};
use toolyard_net::budget::ByteBudget;

use super::delivery::GrpcDelivery;
use super::status::RequestFault;
use crate::descriptor::{MethodTool, ServiceTools};

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
    json: Vec<u8>,
    /// The bound that the stream exceeds.
    cut_by: Option<&'static str>,
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
                let response = self.delivery.run(call.deadline, &self.health, request).await?;
                let json = self.decoded(call, handle, response).await;
                let json = json.map_err(|fault| fault.into_error(""))?;
                CollectedMessages { json: json.into_bytes(), cut_by: None }
            }
            true => {
                let request = |until| {
                    let stream =
                        self.delivery.server_streaming(method.path(), message.clone(), &headers, until);
                    async move { self.collect(call, handle, stream.await?).await }
                };
                self.delivery.run(call.deadline, &self.health, request).await?
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

    async fn decoded(
        &self,
        call: &Call,
        handle: &MethodHandle,
        message: Bytes,
    ) -> Result<String, RequestFault> {
        let decode = |handle: &MethodHandle, message: Bytes| match handle.get() {
            Some(method) => method.decode(message).map_err(|error| error.to_string()),
            None => Err(String::new()),
        };
        let decoded = match &self.long_work {
            Some(long_work) if message.len() > BRIEF_BYTES => {
                let handle = handle.clone();
                let aborted = |error: WorkAborted| RequestFault::Undecodable(error.to_string());
                long_work.run(call, move |_| decode(&handle, message)).await.map_err(aborted)?
            }
            _ => decode(handle, message),
        };
        decoded.map_err(RequestFault::Undecodable)
    }

    /// Collects the messages of a stream up to the bounds, and reports each as progress.
    async fn collect(
        &self,
        call: &Call,
        handle: &MethodHandle,
        mut stream: tonic::Streaming<Bytes>,
    ) -> Result<CollectedMessages, RequestFault> {
        let mut collected = CollectedMessages { json: br#"{"messages":["#.to_vec(), cut_by: None };
        let mut count = 0;
        while let Some(message) = stream.message().await.map_err(|status| self.delivery.fault(status))? {
            if count >= self.bounds.messages {
                collected.cut_by = Some("maxMessages");
                break;
            }
            let json = self.decoded(call, handle, message).await?;
            if collected.json.len() + json.len() > self.bounds.bytes {
                collected.cut_by = Some("maxBytes");
                break;
            }
            if count > 0 {
                collected.json.push(b',');
            }
            collected.json.extend_from_slice(json.as_bytes());
            count += 1;
            report_progress(&*call.client, count);
        }
        collected.json.extend_from_slice(b"]}");
        Ok(collected)
    }

    /// Makes a result of the messages: as text and as structured content.
    async fn output(&self, collected: CollectedMessages) -> Result<CallOutput, ToolError> {
        let exhausted = |error| RequestFault::BudgetExhausted(error).into_error("");
        let json = self.budget.hold(collected.json.into()).await.map_err(exhausted)?;
        let invalid = |error| {
            let text = "The response cannot be written as JSON";
            ToolError::new(ErrorCode::ExecutionFailed, text).caused_by(error)
        };
        let json = Json::parse(json).map_err(invalid)?;
        let mut output = CallOutput::text(json.as_text());
        if let Some(bound) = collected.cut_by {
            let note = format!(
                "The stream has further messages, which are left out: it exceeds `{bound}` of the handler."
            );
            let texts = [json.as_text(), &note].map(text_block);
            output.body.set("content", Json::array(&texts));
        }
        output.body.set(STRUCTURED, json);
        reserve_copies(&self.budget, &mut output, &["content"]).await?;
        Ok(output)
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
