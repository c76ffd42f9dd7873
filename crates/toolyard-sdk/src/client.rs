//! A client of any MCP server, with typed arguments and results.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::{
    Backend, Call, Caller, Catalog, Client as CallClient, Json, JsonError, Notice, Object, Outcome, Output,
    Phase, Secrets, Target, ToolError,
};
use toolyard_mcp::client::{
    Attempts, ClientOptions, Endpoint, HttpEndpoint, LaneOptions, McpBackend, ToolFilter,
};
use toolyard_net::client::Client as HttpClient;
use toolyard_process::{Processes, Spawner};

use crate::schema;

pub use toolyard_process::Program;

/// A connection to an MCP server, of whatever revision it is.
///
/// It stays: where the server goes away and comes back, the next call finds it again. Dropping the client ends the
/// connection, and a server that was started with it.
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

/// Why a client does not connect, or a call gives no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// This is no `http` or `https` URL.
    #[error("{0:?} is no http or https URL")]
    Url(String),
    /// The system's root certificates cannot be read.
    #[error("cannot read the system's root certificates")]
    Roots(#[source] std::io::Error),
    /// The server cannot be reached, or is none.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The arguments cannot be written as a JSON object.
    #[error("the arguments are not a JSON object: {0}")]
    Arguments(String),
    /// The server, or the way to it, failed.
    #[error("the call failed: {0}")]
    Call(#[source] ToolError),
    /// The tool ran and says that it failed. This is what it says.
    #[error("the tool failed: {0}")]
    Tool(String),
    /// The tool wants an answer of the user first, which this client cannot give.
    #[error("the tool asks for input")]
    NeedsInput,
    /// The result is not of the type that was asked for.
    #[error("the result is not what was expected")]
    Result(#[source] serde_json::Error),
}

/// A tool, as its server describes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolInfo {
    /// What it is called by.
    pub name: String,
    /// What it does. Empty where the server does not say.
    pub description: String,
    /// All that the server says of it, schemas included, as MCP writes it.
    pub definition: Value,
}

/// A result as it came.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallResult {
    /// The tool says that it failed.
    pub is_error: bool,
    /// The texts of its content, line after line.
    pub text: String,
    /// Its structured content, if it has some.
    pub structured: Option<Value>,
    /// The whole result, as MCP writes it.
    pub body: Value,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, where that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// Size of a message from a server, in bytes.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Tools of one server.
const TOOLS: usize = 10_000;

impl Client {
    /// Connects to a server on streamable HTTP, or on HTTP+SSE where it has nothing else. A URL without a path means the
    /// usual one.
    ///
    /// # Errors
    /// When there is no server at that URL.
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
        Self::open(Endpoint::Http(HttpEndpoint::new(uri, client))).await
    }

    /// Starts a server, and speaks with it over its standard input and output. It inherits what a program needs of this
    /// process's environment, and none of its secrets.
    ///
    /// It is ended with the client, and with it what it has started and left in its process group. When this process
    /// is killed it is not: it has to notice the end of its standard input.
    ///
    /// # Errors
    /// When the program cannot be started, or is no MCP server.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), toolyard_sdk::client::ClientError> {
    /// use toolyard_sdk::client::{Client, Program};
    ///
    /// let program = Program { command: "mcp-server-time".into(), ..Program::default() };
    /// let client = Client::spawn(program).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn spawn(program: Program) -> Result<Self, ClientError> {
        let processes = Processes::new(Spawner::Direct, 1);
        Self::open(Endpoint::Stdio { program, processes }).await
    }

    async fn open(endpoint: Endpoint) -> Result<Self, ClientError> {
        let options = ClientOptions {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message_bytes: MESSAGE_BYTES,
            tools: TOOLS,
            connect_time: Duration::from_secs(30),
            probe_time: Duration::from_secs(10),
            idle_time: None,
            filter: ToolFilter::default(),
            attempts: Attempts::one(),
            lanes: LaneOptions::SHARED,
            probe: None,
            secrets: Secrets::default(),
        };
        let server = McpBackend::start("server", endpoint, options);
        let mut catalog = server.catalog();
        let connected = catalog.wait_for(|catalog| catalog.phase != Phase::Connecting).await;
        match connected.as_deref().map(|catalog| &catalog.phase) {
            Ok(Phase::Ready) => {}
            Ok(Phase::Unavailable { reason }) => return Err(ClientError::Connect(reason.clone())),
            Ok(Phase::Connecting) | Err(_) => {
                return Err(ClientError::Connect("nothing came of it".to_owned()));
            }
        }
        Ok(Self { server })
    }

    /// What the server offers now. Its changes are followed.
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

    /// Calls a tool. The result is read from the structured content where there is some, else from the text: as it is
    /// for a [`String`], as JSON for any other type. Structured content that is no `T`, and has a `result` and nothing
    /// else, is read as that result: lists and numbers are sent in this way.
    ///
    /// # Errors
    /// When the call fails, the tool says that it failed, or its result is not a `T`.
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

    /// Calls a tool; gives the result as it came, also where the tool says that it failed.
    ///
    /// # Errors
    /// When the call fails.
    ///
    /// ```no_run
    /// # async fn run(client: toolyard_sdk::client::Client) -> Result<(), toolyard_sdk::client::ClientError> {
    /// let result = client.call_raw("divide", &serde_json::json!({"a": 1, "b": 0})).await?;
    /// assert!(result.is_error);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_raw<A>(&self, tool: &str, arguments: &A) -> Result<CallResult, ClientError>
    where
        A: Serialize + Sync + ?Sized,
    {
        self.run(tool, arguments, Arc::new(toolyard_core::NoClient)).await
    }

    /// [`Client::call`], told of the progress meanwhile. `on_progress` must not wait.
    ///
    /// # Errors
    /// As with [`Client::call`].
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
        on_progress: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Result<T, ClientError>
    where
        A: Serialize + Sync + ?Sized,
        T: DeserializeOwned,
    {
        self.run(tool, arguments, Arc::new(Listener(Box::new(on_progress)))).await?.read()
    }

    async fn run<A>(
        &self,
        tool: &str,
        arguments: &A,
        client: Arc<dyn CallClient>,
    ) -> Result<CallResult, ClientError>
    where
        A: Serialize + Sync + ?Sized,
    {
        let written =
            serde_json::to_vec(arguments).map_err(|error| ClientError::Arguments(error.to_string()))?;
        let arguments = match Json::parse(written) {
            Ok(arguments) if arguments.is_null() => Object::new().to_json(),
            Ok(arguments) if arguments.is_object() => arguments,
            Ok(_) => return Err(ClientError::Arguments("it is another kind of value".to_owned())),
            Err(JsonError { problem, .. }) => return Err(ClientError::Arguments(problem.to_owned())),
        };
        let call = Call {
            target: Target::Tool(tool.into()),
            params: Object::new().with("name", Json::string(tool)).with("arguments", arguments),
            meta: Object::new(),
            caller: Caller::default(),
            origin: None,
            deadline: None,
            client,
        };
        match self.server.call(call).await {
            Ok(Outcome::Done(output)) => Ok(CallResult::of(&output)),
            Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(ClientError::NeedsInput),
            Err(error) => Err(ClientError::Call(error)),
        }
    }

    /// Ends the connection, and gives a server that was started time to end by itself.
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

impl CallResult {
    fn of(output: &Output) -> Self {
        let content =
            output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
        let texts =
            content.iter().filter_map(|block| Some(block.to_object().ok()?.get_str("text")?.into_owned()));
        Self {
            is_error: output.is_error,
            text: texts.collect::<Vec<_>>().join("\n"),
            structured: output.body.get("structuredContent").map(Json::to_value),
            body: output.body.to_json().to_value(),
        }
    }

    /// The result as a `T`: see [`Client::call`].
    ///
    /// # Errors
    /// When the tool says that it failed, or the result is not a `T`.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        if self.is_error {
            return Err(ClientError::Tool(self.text));
        }
        if let Some(structured) = self.structured {
            return unwrapped(structured).map_err(ClientError::Result);
        }
        // The text as it is comes first: a text that happens to be JSON is still a text.
        let text = serde_json::from_value(Value::String(self.text.clone()));
        text.or_else(|_| serde_json::from_str(&self.text)).map_err(ClientError::Result)
    }
}

/// Reads structured content, or what [`crate::Json`] has put into it.
pub(crate) fn unwrapped<T: DeserializeOwned>(structured: Value) -> Result<T, serde_json::Error> {
    let error = match T::deserialize(&structured) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match structured {
        Value::Object(mut members) if members.len() == 1 => match members.remove(schema::RESULT) {
            Some(result) => serde_json::from_value(result),
            None => Err(error),
        },
        _ => Err(error),
    }
}

/// Passes progress on.
struct Listener(Box<dyn Fn(Progress) + Send + Sync>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl CallClient for Listener {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        true
    }

    fn notify(&self, notice: Notice) {
        let Notice::Progress(params) = notice else { return };
        let number = |name: &str| params.get(name).and_then(|number| number.as_text().parse().ok());
        if let Some(progress) = number("progress") {
            let message = params.get_str("message").map(std::borrow::Cow::into_owned);
            (self.0)(Progress { progress, total: number("total"), message });
        }
    }
}
