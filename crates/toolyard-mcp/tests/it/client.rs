//! Clients that say exactly what a test has them say, in any revision, over anything that carries messages.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_mcp::server::Frontend;
use toolyard_mcp::server::duplex::{self, DuplexLimits};

use crate::web::{Sse, Web};
use crate::yard::Yard;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Takes every kind of question, and tasks.
pub(crate) const ABLE: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// Longer than anything that a test waits for. With paused time it is over at once where nothing goes on.
const FOREVER: Duration = Duration::from_secs(1_000_000);

/// How long calls go on whose client says nothing more.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Pipe,
    Web,
    Sse,
}

/// One client.
pub(crate) struct Client {
    line: Line,
    heard: UnboundedReceiver<String>,
    revision: &'static str,
    /// What it can be asked, as it says from now on.
    pub(crate) capabilities: String,
    /// What requests say of themselves beside that: members of `_meta`.
    pub(crate) meta: &'static str,
    next: u64,
    /// Random words of the server in the order in which they were heard.
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
    fn open(frontend: Arc<Frontend>, heard: UnboundedSender<String>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let limits = DuplexLimits { line_bytes: 100_000, requests: 100, drain: DRAIN };
        let mut served = JoinSet::new();
        served.spawn(async move { duplex::serve(frontend, input, output, limits).await.unwrap() });
        let (output, input) = tokio::io::split(ours);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _unheard = heard.send(line);
            }
        });
        Self { input: Some(input), served, _reading: reading }
    }
}

/// How long a word is, at least, that was sealed.
const TICKET: usize = 60;

impl Client {
    /// A client that has said who it is, where its revision has words for that, and hears what belongs to no request.
    pub(crate) async fn new(
        yard: &Yard,
        carrier: Carrier,
        revision: &'static str,
        capabilities: &str,
    ) -> Self {
        let mut client = Self::silent(yard, carrier, revision, capabilities).await;
        if revision != MODERN {
            client.initialize().await;
        }
        client
    }

    /// A client that has said nothing yet.
    pub(crate) async fn silent(
        yard: &Yard,
        carrier: Carrier,
        revision: &'static str,
        capabilities: &str,
    ) -> Self {
        let (sender, heard) = mpsc::unbounded_channel();
        let line = match carrier {
            Carrier::Pipe => Line::Pipe(Pipe::open(yard.frontend.clone(), sender)),
            Carrier::Web => Line::Web(Web::new(yard.address(), sender, revision)),
            Carrier::Sse => Line::Sse(Sse::open(yard.address(), sender).await),
        };
        let capabilities = capabilities.to_owned();
        Self {
            line,
            heard,
            revision,
            capabilities,
            meta: "",
            next: 1,
            words: Vec::new(),
            last: String::new(),
        }
    }

    /// A client on a pipe.
    pub(crate) async fn piped(yard: &Yard, revision: &'static str, capabilities: &str) -> Self {
        Self::new(yard, Carrier::Pipe, revision, capabilities).await
    }

    /// Opens a session; gives the answer.
    pub(crate) async fn initialize(&mut self) -> String {
        let params = format!(
            r#""protocolVersion":"{}","capabilities":{},"clientInfo":{{"name":"c","version":"1"}}"#,
            self.revision, self.capabilities
        );
        let initialized = self.ask("initialize", &params).await;
        self.notify("notifications/initialized", "").await;
        if let Line::Web(web) = &mut self.line {
            web.listen().await;
        }
        // Once this is answered, what was said before has been taken in, whatever carries it.
        self.ask("ping", "").await;
        self.next = 1;
        initialized
    }

    /// Says a message as it is.
    pub(crate) async fn say(&mut self, message: &str) {
        match &mut self.line {
            Line::Pipe(pipe) => {
                let input = pipe.input.as_mut().expect("the pipe is open");
                input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
            Line::Web(web) => web.post(message).await,
            Line::Sse(sse) => sse.post(message).await,
        }
    }

    /// Says a message as it is; gives the next one that is heard.
    pub(crate) async fn said(&mut self, message: &str) -> String {
        self.say(message).await;
        self.hear().await
    }

    /// Sends a request with these members of `params`; gives its id.
    pub(crate) async fn request(&mut self, method: &str, params: &str) -> u64 {
        let id = self.next;
        self.next += 1;
        let message = self.text(&id.to_string(), method, params);
        self.say(&message).await;
        id
    }

    /// The text of a request.
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

    /// Sends a request; gives the next message, which is its answer where nothing else is to be said.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> String {
        self.request(method, params).await;
        self.hear().await
    }

    /// Calls a tool with these members of `arguments`; gives the next message.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> String {
        self.ask("tools/call", &tool_params(tool, arguments)).await
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#)).await;
    }

    /// Withdraws a request.
    pub(crate) async fn withdraw(&mut self, id: u64) {
        self.notify("notifications/cancelled", &format!(r#""requestId":{id}"#)).await;
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&mut self, id: u64, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    /// The next message, with numbers for random words.
    pub(crate) async fn hear(&mut self) -> String {
        let heard = timeout(FOREVER, self.heard.recv()).await.expect("something is said");
        self.last = heard.unwrap_or_else(|| "(the end)".to_owned());
        let last = self.last.clone();
        self.plain(&last)
    }

    /// The next messages.
    pub(crate) async fn hear_all(&mut self, count: usize) -> String {
        let mut heard = Vec::new();
        for _ in 0..count {
            heard.push(self.hear().await);
        }
        heard.join("\n")
    }

    /// Everything that was said until now, in a text that cannot be told from silence.
    pub(crate) fn heard_already(&mut self) -> String {
        let mut heard = Vec::new();
        while let Some(Some(message)) = self.heard.recv().now_or_never() {
            heard.push(self.plain(&message));
        }
        heard.join("\n")
    }

    /// A member of the last result, as it is.
    pub(crate) fn last(&self, member: &str) -> String {
        let (_status, body) = self.last.split_at(self.last.find('{').unwrap());
        let message: Value = serde_json::from_str(body).unwrap();
        message["result"][member].as_str().unwrap_or_else(|| panic!("no {member} in {message}")).to_owned()
    }

    /// Says nothing more, and waits until the other side is done, too. Gives what is still said.
    pub(crate) async fn end(mut self) -> String {
        let Line::Pipe(pipe) = &mut self.line else { panic!("only a pipe has an end") };
        pipe.input.take().unwrap().shutdown().await.unwrap();
        timeout(FOREVER, pipe.served.join_next()).await.expect("it ends").unwrap().unwrap();
        let mut heard = Vec::new();
        while let Some(message) = self.heard.recv().await {
            heard.push(self.plain(&message));
        }
        heard.join("\n")
    }

    /// Leaves one request alone, as who closes its connection.
    pub(crate) fn hang_up(&mut self, id: u64) {
        let Line::Web(web) = &mut self.line else {
            panic!("only streamable HTTP has a stream for each request")
        };
        web.hang_up(id);
    }

    /// The session and the revision, as headers say it.
    pub(crate) fn web(&mut self) -> &mut Web {
        let Line::Web(web) = &mut self.line else { panic!("not on the web") };
        web
    }

    /// A message with a number for each random word, and a word for times.
    fn plain(&mut self, message: &str) -> String {
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
        let known = self.words.iter().position(|known| known == word);
        known.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        })
    }
}

/// `2026-11-21T00:00:00.000Z` in quotes becomes `"<time>"`.
fn times(message: &str) -> String {
    let is_time = |part: &str| part.len() == 24 && part.ends_with('Z') && part.as_bytes()[10] == b'T';
    let part = |part| if is_time(part) { "<time>" } else { part };
    message.split('"').map(part).collect::<Vec<_>>().join("\"")
}

/// Members, of which there may be none.
fn joined(members: &[&str]) -> String {
    members.iter().copied().filter(|members| !members.is_empty()).collect::<Vec<_>>().join(",")
}

/// The parameters of a call of a tool.
pub(crate) fn tool_params(tool: &str, arguments: &str) -> String {
    format!(r#""name":"{tool}","arguments":{{{arguments}}}"#)
}

/// The arguments with which a tool asks one question after the other.
pub(crate) fn asking(questions: &[&str]) -> String {
    format!(r#""ask":[[{}]]"#, questions.join("],["))
}

pub(crate) const ELICIT: &str = r#"{"method":"elicitation/create","params":{"message":"who?"}}"#;
pub(crate) const ELICIT_URL: &str =
    r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example"}}"#;
pub(crate) const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"maxTokens":1}}"#;
pub(crate) const ROOTS: &str = r#"{"method":"roots/list","params":{}}"#;
