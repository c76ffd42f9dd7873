//! A client of any MCP server, with typed arguments and results.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, CallTarget, Caller, Catalog, Client as CallClient,
    ClientNotification, Json, JsonError, Object, Outcome, SecretRedactor, ToolError,
};
use toolyard_mcp::client::{
    ClientOptions, DedicatedOptions, EraPreference, HttpEndpoint, McpBackend, ServerEndpoint, UpstreamRetry,
    UpstreamToolFilter,
};
use toolyard_net::client::HttpClient;
use toolyard_process::{ProcessSpawner, ProcessTable};

use crate::schema;

pub use toolyard_process::ProgramSpec;

/// A connection to an MCP server of any protocol revision.
///
/// The client reconnects: if the server goes away and comes back, the next call reaches it. Dropping the client ends
/// the connection, and the server if the client started it.
///
/// ```no_run
/// use serde::{Deserialize, Serialize};
/// use toolyard_sdk::client::Client;
///
/// #[derive(Serialize)]
/// struct Multiply { x: f64, y: f64 }
///
/// #[derive(Deserialize)]
/// struct Product { product: f64 }
///
/// # async fn run() -> Result<(), toolyard_sdk::client::ClientError> {
/// let client = Client::connect("http://127.0.0.1:8080/mcp").await?;
/// for tool in client.tools() {
///     println!("{}: {}", tool.name, tool.description);
/// }
/// let answer: Product = client.call("multiply", &Multiply { x: 6.0, y: 7.0 }).await?;
/// assert_eq!(answer.product, 42.0);
/// # Ok(())
/// # }
/// ```
pub struct Client {
    server: McpBackend,
}

/// Error of a connection attempt or a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not an `http` or `https` URL.
    #[error("{0:?} is not an http or https URL")]
    Url(String),
    /// The system's root certificates cannot be read.
    #[error("cannot read the system's root certificates")]
    Roots(#[source] std::io::Error),
    /// The server cannot be reached, or is not an MCP server.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The arguments cannot be serialized as a JSON object.
    #[error("the arguments are not a JSON object: {0}")]
    Arguments(String),
    /// The server or the connection to it failed.
    #[error("the call failed: {0}")]
    Call(#[source] ToolError),
    /// The tool ran and reported a failure, with this text.
    #[error("the tool failed: {0}")]
    Tool(String),
    /// The tool needs input from the user first, which this client cannot provide.
    #[error("the tool asks for input")]
    NeedsInput,
    /// The result does not have the expected type.
    #[error("the result does not have the expected type")]
    Result(#[source] serde_json::Error),
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name for calls.
    pub name: String,
    /// The description for the model. Empty if the server gives none.
    pub description: String,
    /// The whole definition in MCP's JSON, including the schemas.
    pub definition: Value,
}

/// An untyped result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCallResult {
    /// `true` if the tool reports a failure.
    pub is_error: bool,
    /// The texts of the content, joined by line breaks.
    pub text: String,
    /// The structured content, if any.
    pub structured: Option<Value>,
    /// The whole result in MCP's JSON.
    pub body: Value,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProgressUpdate {
    /// The amount of work that is done.
    pub progress: f64,
    /// The total amount of work, if known.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

/// Maximum size of a message from a server, in bytes.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of tools of one server.
const TOOLS: usize = 10_000;

impl Client {
    /// Connects to a server over streamable HTTP, or over HTTP+SSE if it supports nothing else. A URL without a path
    /// means the usual path.
    ///
    /// # Errors
    /// If there is no MCP server at that URL.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), toolyard_sdk::client::ClientError> {
    /// let client = toolyard_sdk::client::Client::connect("http://127.0.0.1:8080/mcp").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: &str) -> Result<Self, ClientError> {
        let bad = || ClientError::Url(url.to_owned());
        let uri: http::Uri = url.parse().map_err(|_| bad())?;
        let client = match uri.scheme_str() {
            Some("https") => HttpClient::with_system_roots(),
            Some("http") => HttpClient::without_roots(),
            _ => return Err(bad()),
        };
        let client = client.map_err(ClientError::Roots)?;
        Self::open(ServerEndpoint::Http(HttpEndpoint::new(uri, client))).await
    }

    /// Starts a server and talks to it over its standard input and output. The program inherits the necessary
    /// environment variables of this process, and none of its secrets.
    ///
    /// The program ends with the client, and so do the processes that it started and left in its process group. If this
    /// process is killed, the program has to notice the end of its standard input.
    ///
    /// # Errors
    /// If the program cannot be started, or is not an MCP server.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), toolyard_sdk::client::ClientError> {
    /// use toolyard_sdk::client::{Client, ProgramSpec};
    ///
    /// let program = ProgramSpec { command: "mcp-server-time".into(), ..ProgramSpec::default() };
    /// let client = Client::spawn(program).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn spawn(program: ProgramSpec) -> Result<Self, ClientError> {
        let processes = ProcessTable::new(ProcessSpawner::Direct, 1);
        Self::open(ServerEndpoint::Stdio { program, processes }).await
    }

    async fn open(endpoint: ServerEndpoint) -> Result<Self, ClientError> {
        let options = ClientOptions {
            dropped_notices: Arc::default(),
            skipped_messages: Arc::default(),
            error_lines: Default::default(),
            launcher: None,
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            max_message_bytes: MESSAGE_BYTES,
            max_list_items: TOOLS,
            max_depth: toolyard_core::json::DEFAULT_DEPTH,
            connect_timeout: Duration::from_secs(30),
            discover_timeout: Duration::from_secs(10),
            idle_timeout: None,
            era: EraPreference::default(),
            filter: UpstreamToolFilter::default(),
            retry: UpstreamRetry::never(),
            dedicated: DedicatedOptions::SHARED,
            probe: None,
            budget: toolyard_net::budget::ByteBudget::default(),
            secrets: SecretRedactor::default(),
        };
        let server = McpBackend::start("server", endpoint, options);
        let mut catalog = server.catalog();
        let connected = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await;
        match connected.as_deref().map(|catalog| &catalog.phase) {
            Ok(BackendPhase::Ready) => {}
            Ok(BackendPhase::Unavailable { reason }) => return Err(ClientError::Connect(reason.to_string())),
            Ok(BackendPhase::Connecting) | Err(_) => {
                return Err(ClientError::Connect(
                    "the connection ended before it was established".to_owned(),
                ));
            }
        }
        Ok(Self { server })
    }

    /// The tools that the server currently offers. Changes of the list are followed.
    ///
    /// ```no_run
    /// # async fn run(client: toolyard_sdk::client::Client) {
    /// let names: Vec<String> = client.tools().into_iter().map(|tool| tool.name).collect();
    /// # }
    /// ```
    #[must_use]
    pub fn tools(&self) -> Vec<ToolInfo> {
        let catalog: Arc<Catalog> = self.server.catalog().borrow().clone();
        let info = |tool: &Arc<toolyard_core::Tool>| ToolInfo {
            name: tool.name.to_string(),
            description: tool.definition.get_str("description").unwrap_or_default().into_owned(),
            definition: tool.definition.to_json().to_value(),
        };
        catalog.tools.iter().map(info).collect()
    }

    /// Calls a tool. The result is read from the structured content if there is any, else from the text: verbatim for a
    /// [`String`], as JSON for any other type. Structured content that is not a `T` and consists of a `result` only is
    /// read as that result, because servers send lists and numbers in this way.
    ///
    /// # Errors
    /// If the call fails, the tool reports a failure, or its result is not a `T`.
    ///
    /// ```no_run
    /// # async fn run(client: toolyard_sdk::client::Client) -> Result<(), toolyard_sdk::client::ClientError> {
    /// let reversed: String = client.call("reverse_string", &serde_json::json!({"input": "abc"})).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call<A, T>(&self, tool: &str, arguments: &A) -> Result<T, ClientError>
    where
        A: Serialize + Sync + ?Sized,
        T: DeserializeOwned,
    {
        self.call_raw(tool, arguments).await?.read()
    }

    /// Calls a tool and returns the untyped result, also if the tool reports a failure.
    ///
    /// # Errors
    /// If the call fails.
    ///
    /// ```no_run
    /// # async fn run(client: toolyard_sdk::client::Client) -> Result<(), toolyard_sdk::client::ClientError> {
    /// let result = client.call_raw("divide", &serde_json::json!({"a": 1, "b": 0})).await?;
    /// assert!(result.is_error);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_raw<A>(&self, tool: &str, arguments: &A) -> Result<ToolCallResult, ClientError>
    where
        A: Serialize + Sync + ?Sized,
    {
        self.run(tool, arguments, Arc::new(toolyard_core::NoClient)).await
    }

    /// Like [`Client::call`], and reports the progress meanwhile. `on_progress` must not block.
    ///
    /// # Errors
    /// As for [`Client::call`].
    ///
    /// ```no_run
    /// # async fn run(client: toolyard_sdk::client::Client) -> Result<(), toolyard_sdk::client::ClientError> {
    /// let arguments = serde_json::json!({"steps": 3});
    /// let done: String = client.call_with_progress("long", &arguments, |now| println!("{}", now.progress)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_with_progress<A, T>(
        &self,
        tool: &str,
        arguments: &A,
        on_progress: impl Fn(ProgressUpdate) + Send + Sync + 'static,
    ) -> Result<T, ClientError>
    where
        A: Serialize + Sync + ?Sized,
        T: DeserializeOwned,
    {
        self.run(tool, arguments, Arc::new(ProgressListener(Box::new(on_progress)))).await?.read()
    }

    async fn run<A>(
        &self,
        tool: &str,
        arguments: &A,
        client: Arc<dyn CallClient>,
    ) -> Result<ToolCallResult, ClientError>
    where
        A: Serialize + Sync + ?Sized,
    {
        let json =
            serde_json::to_vec(arguments).map_err(|error| ClientError::Arguments(error.to_string()))?;
        let arguments = match Json::parse(json) {
            Ok(arguments) if arguments.is_null() => Object::new().to_json(),
            Ok(arguments) if arguments.is_object() => arguments,
            Ok(_) => return Err(ClientError::Arguments("the value is not an object".to_owned())),
            Err(JsonError { problem, .. }) => return Err(ClientError::Arguments(problem.to_owned())),
        };
        let call = Call {
            target: CallTarget::Tool(tool.into()),
            params: Object::new().with("name", Json::string(tool)).with("arguments", arguments),
            meta: Object::new(),
            caller: Caller::default(),
            origin: None,
            deadline: None,
            handler_deadline: None,
            parent: None,
            client,
        };
        match self.server.call(call).await {
            Ok(Outcome::Done(output)) => Ok(ToolCallResult::of(&output)),
            Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(ClientError::NeedsInput),
            Err(error) => Err(ClientError::Call(error)),
        }
    }

    /// Ends the connection. A server that the client started gets time to exit.
    ///
    /// ```no_run
    /// # async fn run(client: toolyard_sdk::client::Client) {
    /// client.close().await;
    /// # }
    /// ```
    pub async fn close(self) {
        self.server.stop().await;
    }
}

impl ToolCallResult {
    fn of(output: &CallOutput) -> Self {
        let content =
            output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
        let texts =
            content.iter().filter_map(|block| Some(block.to_object().ok()?.get_str("text")?.into_owned()));
        Self {
            is_error: output.is_error,
            text: texts.collect::<Vec<_>>().join("\n"),
            structured: output.body.get(STRUCTURED).map(Json::to_value),
            body: output.body.to_json().to_value(),
        }
    }

    /// Converts the result into a `T`: see [`Client::call`].
    ///
    /// # Errors
    /// If the tool reports a failure, or the result is not a `T`.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        if self.is_error {
            return Err(ClientError::Tool(self.text));
        }
        if let Some(structured) = self.structured {
            return from_structured(structured).map_err(ClientError::Result);
        }
        // The verbatim text comes first: a text that happens to be JSON is still a text.
        let text = serde_json::from_value(Value::String(self.text.clone()));
        text.or_else(|_| serde_json::from_str(&self.text)).map_err(ClientError::Result)
    }
}

/// Reads structured content, or the value that [`crate::Json`] wrapped in it.
pub(crate) fn from_structured<T: DeserializeOwned>(structured: Value) -> Result<T, serde_json::Error> {
    let error = match T::deserialize(&structured) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match structured {
        Value::Object(mut members) if members.len() == 1 => match members.remove(schema::RESULT_MEMBER) {
            Some(result) => serde_json::from_value(result),
            None => Err(error),
        },
        _ => Err(error),
    }
}

/// Forwards progress notifications to a callback.
struct ProgressListener(Box<dyn Fn(ProgressUpdate) + Send + Sync>);

impl std::fmt::Debug for ProgressListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressListener")
    }
}

impl CallClient for ProgressListener {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        true
    }

    fn notify(&self, notice: ClientNotification) {
        let ClientNotification::Progress(body) = notice else { return };
        let params = body.params;
        let number = |name: &str| params.get(name).and_then(|number| number.as_text().parse().ok());
        if let Some(progress) = number("progress") {
            let message = params.get_str("message").map(std::borrow::Cow::into_owned);
            (self.0)(ProgressUpdate { progress, total: number("total"), message });
        }
    }
}
