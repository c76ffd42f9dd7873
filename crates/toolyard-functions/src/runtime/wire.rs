//! What the host and a worker say to each other: lines of JSON. A call and what its handler returned have a second
//! line, which is the event or the answer as it is, so that nobody reads it but who has to.

use serde::{Deserialize, Serialize};

/// How long a line may be that is no answer, in bytes: what is printed grows when it is written as JSON, and a request
/// that is to be made has a body.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// How long the text of an error may be, in bytes, also where an answer may be longer.
const LONGEST_ERROR: usize = 16 << 10;

/// How long the name of its kind may be, in bytes.
const LONGEST_KIND: usize = 128;

/// How long the text of an error may be where an answer may be so long, in bytes.
pub(crate) fn error_bytes(output_bytes: usize) -> usize {
    output_bytes.min(LONGEST_ERROR)
}

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
    /// Which call it is, which cannot be guessed: what a worker says carries it, so that nothing late or early is taken
    /// for an answer.
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
    /// It has the code, and nothing is left of the call before, if there was one.
    Ready { call: u64 },
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

impl Failure {
    /// With texts of `limit` bytes at most, all together.
    #[must_use]
    pub(crate) fn within(self, limit: usize) -> Self {
        match self {
            Self::Thrown { kind, message, details } => {
                let kind = beginning(kind, limit.min(LONGEST_KIND));
                let message = beginning(message, limit - kind.len());
                let details = beginning(details, limit - kind.len() - message.len());
                Self::Thrown { kind, message, details }
            }
            Self::NotLoaded { message } => Self::NotLoaded { message: beginning(message, limit) },
            Self::TimedOut | Self::OutOfMemory | Self::OutputTooLarge => self,
        }
    }
}

/// As much of a text as fits into `limit` bytes.
pub(crate) fn beginning(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    text
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
