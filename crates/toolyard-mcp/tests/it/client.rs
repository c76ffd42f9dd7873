//! Raw clients that send exactly what a test says, in any revision, over any transport.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::CallerPeer;
use toolyard_mcp::server::McpFrontend;
use toolyard_mcp::server::duplex::{self, DuplexLimits};

use crate::test_gateway::TestGateway;
use crate::web::{Sse, Web};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Capabilities for every kind of request, and tasks.
pub(crate) const ABLE: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// Longer than any wait of a test. With paused time it passes at once if nothing happens.
const FOREVER: Duration = Duration::from_secs(1_000_000);

/// Drain time of a pipe.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Pipe,
    Web,
    Sse,
}

/// A raw client.
pub(crate) struct Client {
    line: Line,
    received: UnboundedReceiver<String>,
    revision: &'static str,
    /// The capabilities that it declares from now on.
    pub(crate) capabilities: String,
    /// Further members of `_meta`.
    pub(crate) meta: &'static str,
    next: u64,
    /// Random words of the server in order of appearance.
    words: Vec<String>,
    last: String,
}

enum Line {
    Pipe(Pipe),
    Web(Web),
    Sse(Sse),
}

/// A client at the end of a pair of streams.
struct Pipe {
    input: Option<WriteHalf<DuplexStream>>,
    served: JoinSet<()>,
    _reading: JoinSet<()>,
}

impl Pipe {
    fn open(frontend: Arc<McpFrontend>, received: UnboundedSender<String>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let limits = DuplexLimits { max_line_bytes: 100_000, max_requests: 100, drain_time: DRAIN };
        let mut served = JoinSet::new();
        served.spawn(async move {
            duplex::serve(frontend, input, output, limits, CallerPeer::Unknown).await.unwrap()
        });
        let (output, input) = tokio::io::split(ours);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _unheard = received.send(line);
            }
        });
        Self { input: Some(input), served, _reading: reading }
    }
}

/// Minimum length of a sealed word.
const TICKET: usize = 60;

impl Client {
    /// Creates a client that is initialized, if its revision needs that, and that reads the notification stream.
    pub(crate) async fn new(
        gateway: &TestGateway,
        transport: Transport,
        revision: &'static str,
        capabilities: &str,
    ) -> Self {
        let mut client = Self::uninitialized(gateway, transport, revision, capabilities).await;
        if revision != MODERN {
            client.initialize().await;
        }
        client
    }

    /// Creates a client that has sent nothing.
    pub(crate) async fn uninitialized(
        gateway: &TestGateway,
        transport: Transport,
        revision: &'static str,
        capabilities: &str,
    ) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let line = match transport {
            Transport::Pipe => Line::Pipe(Pipe::open(gateway.frontend.clone(), sender)),
            Transport::Web => Line::Web(Web::new(gateway.address(), sender, revision)),
            Transport::Sse => Line::Sse(Sse::open(gateway.address(), sender).await),
        };
        let capabilities = capabilities.to_owned();
        Self {
            line,
            received,
            revision,
            capabilities,
            meta: "",
            next: 1,
            words: Vec::new(),
            last: String::new(),
        }
    }

    /// Creates a client on a pipe.
    pub(crate) async fn on_pipe(gateway: &TestGateway, revision: &'static str, capabilities: &str) -> Self {
        Self::new(gateway, Transport::Pipe, revision, capabilities).await
    }

    /// Opens a session and returns the response.
    pub(crate) async fn initialize(&mut self) -> String {
        let params = format!(
            r#""protocolVersion":"{}","capabilities":{},"clientInfo":{{"name":"c","version":"1"}}"#,
            self.revision, self.capabilities
        );
        let initialized = self.request("initialize", &params).await;
        self.notify("notifications/initialized", "").await;
        if let Line::Web(web) = &mut self.line {
            web.listen().await;
        }
        // Once this is answered, everything before was processed, over every transport.
        self.request("ping", "").await;
        self.next = 1;
        initialized
    }

    /// Sends a message unchanged.
    pub(crate) async fn send(&mut self, message: &str) {
        match &mut self.line {
            Line::Pipe(pipe) => {
                let input = pipe.input.as_mut().expect("the pipe is open");
                input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
            Line::Web(web) => web.post(message).await,
            Line::Sse(sse) => sse.post(message).await,
        }
    }

    /// Sends a message unchanged and returns the next message.
    pub(crate) async fn send_and_receive(&mut self, message: &str) -> String {
        self.send(message).await;
        self.receive().await
    }

    /// Sends a request with these members of `params` and returns its id.
    pub(crate) async fn send_request(&mut self, method: &str, params: &str) -> u64 {
        let id = self.next;
        self.next += 1;
        let message = self.text(&id.to_string(), method, params);
        self.send(&message).await;
        id
    }

    /// Returns the text of a request.
    pub(crate) fn text(&self, id: &str, method: &str, params: &str) -> String {
        let own = match self.revision {
            MODERN => format!(
                r#""io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{}"#,
                self.capabilities
            ),
            _ => String::new(),
        };
        let meta = joined(&[&own, self.meta]);
        let meta = if meta.is_empty() { meta } else { format!(r#""_meta":{{{meta}}}"#) };
        let params = joined(&[params, &meta]);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
    }

    /// Sends a request and returns the next message, which is the response unless others precede it.
    pub(crate) async fn request(&mut self, method: &str, params: &str) -> String {
        self.send_request(method, params).await;
        self.receive().await
    }

    /// Calls a tool with these members of `arguments` and returns the next message.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> String {
        self.request("tools/call", &tool_params(tool, arguments)).await
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &str) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#)).await;
    }

    /// Cancels a request.
    pub(crate) async fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", &format!(r#""requestId":{id}"#)).await;
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&mut self, id: u64, result: &str) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    /// Returns the next message, with numbers for random words.
    pub(crate) async fn receive(&mut self) -> String {
        let received = timeout(FOREVER, self.received.recv()).await.expect("something is said");
        self.last = received.unwrap_or_else(|| "(the end)".to_owned());
        let last = self.last.clone();
        self.normalize(&last)
    }

    /// Returns the next messages.
    pub(crate) async fn receive_many(&mut self, count: usize) -> String {
        let mut received = Vec::new();
        for _ in 0..count {
            received.push(self.receive().await);
        }
        received.join("\n")
    }

    /// Returns the messages received so far.
    pub(crate) fn received_so_far(&mut self) -> String {
        let mut received = Vec::new();
        while let Some(Some(message)) = self.received.recv().now_or_never() {
            received.push(self.normalize(&message));
        }
        received.join("\n")
    }

    /// Returns a member of the last result, unchanged.
    pub(crate) fn last(&self, member: &str) -> String {
        let (_status, body) = self.last.split_at(self.last.find('{').unwrap());
        let message: Value = serde_json::from_str(body).unwrap();
        message["result"][member].as_str().unwrap_or_else(|| panic!("no {member} in {message}")).to_owned()
    }

    /// Closes the input, waits until the server ends, and returns the remaining messages.
    pub(crate) async fn end(mut self) -> String {
        let Line::Pipe(pipe) = &mut self.line else { panic!("only a pipe has an end") };
        pipe.input.take().unwrap().shutdown().await.unwrap();
        timeout(FOREVER, pipe.served.join_next()).await.expect("it ends").unwrap().unwrap();
        let mut received = Vec::new();
        while let Some(message) = self.received.recv().await {
            received.push(self.normalize(&message));
        }
        received.join("\n")
    }

    /// Disconnects one request.
    pub(crate) fn disconnect(&mut self, id: u64) {
        let Line::Web(web) = &mut self.line else {
            panic!("only streamable HTTP has a stream for each request")
        };
        web.disconnect(id);
    }

    /// Returns the HTTP part of the client.
    pub(crate) fn web(&mut self) -> &mut Web {
        let Line::Web(web) = &mut self.line else { panic!("not on the web") };
        web
    }

    /// Replaces random words by numbers, and times by a word.
    fn normalize(&mut self, message: &str) -> String {
        let mut plain = String::new();
        let mut rest = message;
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        while let Some(at) = rest.find(is_of_word) {
            let (before, word) = rest.split_at(at);
            let end = word.find(|c: char| !is_of_word(c)).unwrap_or(word.len());
            let (word, behind) = word.split_at(end);
            plain += before;
            let is_session = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            match is_session || word.len() >= TICKET {
                true => plain += &format!("<{}>", self.number(word)),
                false => plain += word,
            }
            rest = behind;
        }
        times(&(plain + rest))
    }

    fn number(&mut self, word: &str) -> usize {
        let index = self.words.iter().position(|other| other == word);
        index.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        })
    }
}

/// Replaces `2026-11-21T00:00:00.000Z` in quotes by `"<time>"`.
fn times(message: &str) -> String {
    let is_time = |part: &str| part.len() == 24 && part.ends_with('Z') && part.as_bytes()[10] == b'T';
    let part = |part| if is_time(part) { "<time>" } else { part };
    message.split('"').map(part).collect::<Vec<_>>().join("\"")
}

/// Joins members, some of which may be empty.
fn joined(members: &[&str]) -> String {
    members.iter().copied().filter(|members| !members.is_empty()).collect::<Vec<_>>().join(",")
}

/// Returns the parameters of a tool call.
pub(crate) fn tool_params(tool: &str, arguments: &str) -> String {
    format!(r#""name":"{tool}","arguments":{{{arguments}}}"#)
}

/// Returns the arguments with which a tool asks one question after the other.
pub(crate) fn asking(questions: &[&str]) -> String {
    format!(r#""ask":[[{}]]"#, questions.join("],["))
}

pub(crate) const ELICIT: &str = r#"{"method":"elicitation/create","params":{"message":"who?"}}"#;
pub(crate) const ELICIT_URL: &str =
    r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example"}}"#;
pub(crate) const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"maxTokens":1}}"#;
pub(crate) const ROOTS: &str = r#"{"method":"roots/list","params":{}}"#;
