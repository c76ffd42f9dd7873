//! What the host and a worker say to each other: lines of JSON. A call and what its handler returned have a second
//! line, which is the event or the answer as it is, so that nobody reads it but who has to.

use serde::{Deserialize, Serialize};

/// The first line that a worker gets: the code, and what it may take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Names and contents, in base64: not every file of a function is text.
    pub(crate) files: Vec<(String, String)>,
    /// The name of the file that has the handler.
    pub(crate) entry: String,
    /// The function that is called.
    pub(crate) handler: String,
    pub(crate) environment: Vec<(String, String)>,
    /// A folder of packages, as the worker sees it.
    pub(crate) packages: Option<String>,
    pub(crate) network: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) output_bytes: usize,
    pub(crate) log_bytes: usize,
}

/// A call. The event is on the next line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallHead {
    /// Which call it is: what a worker says carries it, so that nothing late is taken for an answer.
    pub(crate) call: u64,
    /// How much time there is.
    pub(crate) left_ms: u64,
    pub(crate) context: Told,
}

/// What a handler is told of its call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) function_id: String,
    pub(crate) version: String,
    pub(crate) request_id: String,
    /// In ISO 8601.
    pub(crate) deadline: String,
    pub(crate) remaining_ms: u64,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Reply {
    /// It has the code.
    Ready,
    /// The code cannot be used.
    NotLoaded { message: String },
    /// What the handler returned is on the next line.
    Returned { call: u64, log: String, last: bool },
    /// The call came to nothing.
    Failed { call: u64, log: String, last: bool, failure: Failure },
    /// The handler waits for what is fetched.
    Fetch { call: u64, request: FetchRequest },
}

/// How a call fails inside of its worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub(crate) enum Failure {
    Thrown { kind: String, message: String, details: String },
    NotLoaded { message: String },
    TimedOut,
    OutOfMemory,
    OutputTooLarge,
}

/// What a worker is told of a request that it asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fetched {
    Response(FetchResponse),
    /// There is none, and why.
    Refused(String),
}

/// A request that a handler wants made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Where to.
    pub url: String,
    /// Such as `GET`.
    pub method: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Option<String>,
}

/// The response to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchResponse {
    /// Such as 200.
    pub status: u16,
    /// What HTTP/1.1 calls the reason.
    pub status_text: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What came, as text.
    pub body: String,
}
