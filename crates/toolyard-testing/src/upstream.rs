//! Scripted upstreams that send exactly the bytes that a test specifies.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::http1::{BodyFraming, Http1Reader, HttpHead};
use crate::json::{self, JsonNode};

/// A request as the server received it.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The head.
    pub head: HttpHead,
    /// The body.
    pub body: String,
}

impl ReceivedRequest {
    /// Returns the request as text: head, blank line, body.
    pub fn text(&self) -> String {
        format!("{}\r\n\r\n{}", self.head.text().replace('\n', "\r\n"), self.body)
    }

    /// Returns the JSON-RPC method, or the HTTP method of a request without a body.
    pub fn method(&self) -> String {
        match self.body.is_empty() {
            true => self.head.start.split(' ').next().unwrap_or_default().to_owned(),
            false => self.message().find("method").map(JsonNode::plain).unwrap_or_default(),
        }
    }

    /// Returns the JSON-RPC message.
    pub fn message(&self) -> JsonNode {
        json::read(&self.body)
    }

    /// Returns the parameters of the message.
    pub fn params(&self) -> JsonNode {
        self.message().get("params").clone()
    }

    /// Returns the text of the id.
    pub fn id(&self) -> String {
        self.message().get("id").text()
    }
}

/// The bytes sent for one request; the connection may end after them.
pub struct ScriptedReply {
    bytes: BoxStream<'static, Bytes>,
    then: AfterReply,
}

/// Fate of a connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterReply {
    KeepOpen,
    Close,
    Reset,
}

impl ScriptedReply {
    /// These bytes, and then the end of the connection.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: stream::iter([bytes.into()]).boxed(), then: AfterReply::Close }
    }

    /// These bytes, which are a complete response: the connection stays open for the next request.
    pub fn complete(bytes: impl Into<Bytes>) -> Self {
        Self { then: AfterReply::KeepOpen, ..Self::raw(bytes) }
    }

    /// These bytes, and then nothing for as long as the peer waits.
    pub fn stalled(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: stream::iter([bytes.into()]).chain(stream::pending()).boxed(), then: AfterReply::Close }
    }

    /// A reset of the connection.
    pub fn reset() -> Self {
        Self { bytes: stream::empty().boxed(), then: AfterReply::Reset }
    }

    /// A complete response. `headers` are complete lines with their line ends.
    pub fn http(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Self::complete(text)
    }

    /// A response with a JSON body.
    pub fn json(body: &str) -> Self {
        Self::http(200, "content-type: application/json\r\n", body)
    }

    /// The result of a request.
    pub fn result(request: &ReceivedRequest, result: &str) -> Self {
        Self::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id()))
    }

    /// A chunked response with the pieces of a stream. It stays open after the last piece.
    pub fn live(kind: &str, pieces: impl stream::Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::ending(kind, pieces.chain(stream::pending()))
    }

    /// A chunked response that ends with the stream.
    pub fn ending(kind: &str, pieces: impl stream::Stream<Item = Bytes> + Send + 'static) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        let head = stream::once(async { Bytes::from(head) });
        let end = stream::once(async { Bytes::from_static(b"0\r\n\r\n") });
        Self {
            bytes: head.chain(pieces.map(|piece| chunk(&piece))).chain(end).boxed(),
            then: AfterReply::Close,
        }
    }

    /// A complete stream of events, in the given pieces.
    pub fn events(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let mut text = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n".to_vec();
        text.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
        pieces.into_iter().for_each(|piece| text.extend_from_slice(&chunk(&piece)));
        text.extend_from_slice(b"0\r\n\r\n");
        Self::complete(text)
    }

    /// No bytes, for as long as the peer waits.
    pub fn never() -> Self {
        Self { bytes: stream::pending().boxed(), then: AfterReply::Close }
    }

    /// The same reply, once `ready` completes.
    pub fn after(self, ready: impl Future<Output = ()> + Send + 'static) -> Self {
        let wait = stream::once(async {
            ready.await;
            Bytes::new()
        });
        Self { bytes: wait.chain(self.bytes).boxed(), ..self }
    }
}

fn chunk(piece: &[u8]) -> Bytes {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    chunk.into()
}

/// Decides the reply to a request.
pub trait ReplyScript: Send + Sync + 'static {
    /// Returns the reply to a request.
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply;
}

impl<F: Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync + 'static> ReplyScript for F {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        self(request)
    }
}

/// The requests that a server has received.
#[derive(Debug, Default)]
pub struct RequestLog {
    /// The requests in order of arrival.
    pub requests: Vec<ReceivedRequest>,
    /// The methods of requests whose connection was closed before the reply was complete.
    pub dropped: Vec<String>,
}

impl RequestLog {
    /// Returns the number of requests with this method.
    pub fn count(&self, method: &str) -> usize {
        self.requests.iter().filter(|request| request.method() == method).count()
    }

    /// Returns the latest request with this method.
    #[track_caller]
    pub fn last(&self, method: &str) -> &ReceivedRequest {
        self.requests.iter().rfind(|request| request.method() == method).expect("such a request came")
    }
}

/// A running server. Dropping it closes its connections.
pub struct TestUpstream {
    /// The address at which it listens.
    pub address: SocketAddr,
    log: watch::Receiver<RequestLog>,
    tasks: JoinSet<()>,
}

/// An address that refuses connections until a server is started there.
pub struct ReservedAddress(TcpSocket);

impl ReservedAddress {
    /// Reserves a free port.
    #[expect(clippy::new_without_default, reason = "it takes a port of the system")]
    pub fn new() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    /// The address of a server that has stopped.
    pub fn at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self(socket)
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Starts a server at the address.
    pub fn start(self, script: impl ReplyScript) -> TestUpstream {
        let listener = self.0.listen(4096).unwrap();
        let (sender, log) = watch::channel(RequestLog::default());
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::new(script), Arc::new(sender)));
        TestUpstream { address, log, tasks }
    }
}

impl TestUpstream {
    /// Starts a server on a free port.
    pub fn start(script: impl ReplyScript) -> Self {
        ReservedAddress::new().start(script)
    }

    /// Waits until `seen` holds for the log; returns the result of `read` at that moment.
    pub async fn saw<T>(&self, seen: impl Fn(&RequestLog) -> bool, read: impl FnOnce(&RequestLog) -> T) -> T {
        let mut log = self.log.clone();
        let log = log.wait_for(|log| seen(log)).await.unwrap();
        read(&log)
    }

    /// Closes the port and all connections.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }

    /// Returns the result of `read` for the current log.
    pub fn now<T>(&self, read: impl FnOnce(&RequestLog) -> T) -> T {
        read(&self.log.borrow())
    }
}

/// A server with a thread of its own, for tests that block.
pub struct BackgroundUpstream {
    /// The server.
    pub server: TestUpstream,
    _runtime: Runtime,
}

impl BackgroundUpstream {
    /// Starts a server on a free port.
    pub fn start(script: impl ReplyScript) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = {
            let _context = runtime.enter();
            TestUpstream::start(script)
        };
        Self { server, _runtime: runtime }
    }

    /// Returns the URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    /// Returns the requests so far as text, in order of arrival.
    pub fn requests(&self) -> Vec<String> {
        self.server.now(|log| log.requests.iter().map(ReceivedRequest::text).collect())
    }
}

async fn accept(listener: TcpListener, script: Arc<dyn ReplyScript>, log: Arc<watch::Sender<RequestLog>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.spawn(serve(stream, script.clone(), log.clone()));
    }
}

/// Serves one connection, up to the first write that fails.
async fn serve(stream: TcpStream, script: Arc<dyn ReplyScript>, log: Arc<watch::Sender<RequestLog>>) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = Http1Reader::new(reader);
    while let Ok(Some(head)) = reader.head().await {
        let Ok(body) = reader.body(head.framing(BodyFraming::Length(0))).await else { return };
        let request = ReceivedRequest { head, body };
        log.send_modify(|log| log.requests.push(request.clone()));
        let mut reply = script.reply(&request);
        let write = async {
            while let Some(bytes) = reply.bytes.next().await {
                if writer.write_all(&bytes).await.is_err() {
                    return false;
                }
            }
            true
        };
        // Peers send no second request before the response to the first, so that readable data means the end.
        let outcome = tokio::select! {
            outcome = write => outcome,
            () = reader.end() => false,
        };
        if !outcome {
            log.send_modify(|log| log.dropped.push(request.method()));
        }
        if outcome && reply.then == AfterReply::Reset {
            // The socket is closed at the end of this function; a failure here shows in the test.
            let _reset = writer.as_ref().set_zero_linger();
        }
        if !outcome || reply.then != AfterReply::KeepOpen {
            return;
        }
    }
}

// === a well-behaved server ===

/// The protocol era of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamEra {
    /// Sessions, revision 2025-11-25.
    Legacy,
    /// Independent requests, revision 2026-07-28.
    Modern,
}

/// A correct MCP server; the test supplies the replies to `tools/call`.
pub struct ScriptedUpstream {
    /// The era of the server.
    pub era: UpstreamEra,
    /// The texts of the definitions. The server announces changes.
    pub tools: watch::Receiver<Vec<String>>,
    /// The replies to `tools/call`.
    pub call: Box<dyn ReplyScript>,
}

impl ScriptedUpstream {
    /// A server whose tools do not change.
    pub fn new(era: UpstreamEra, tools: &[&str], call: impl ReplyScript) -> Self {
        let (_, tools) = watch::channel(tools.iter().map(ToString::to_string).collect());
        Self { era, tools, call: Box::new(call) }
    }

    fn tools(&self) -> String {
        format!("[{}]", self.tools.borrow().join(","))
    }

    /// A stream that begins with `first` and announces every change of the tools.
    fn changes(&self, first: String, announcement: &'static str) -> ScriptedReply {
        let mut tools = self.tools.clone();
        tools.mark_unchanged();
        let rest = stream::unfold(tools, move |mut tools| async move {
            tools.changed().await.ok()?;
            Some((Bytes::from(format!("data: {announcement}\n\n")), tools))
        });
        ScriptedReply::live("text/event-stream", stream::iter([Bytes::from(first)]).chain(rest))
    }
}

/// Returns a server that replies with `say` where that returns a reply, and otherwise behaves correctly.
pub fn but(
    server: impl ReplyScript,
    say: impl Fn(&ReceivedRequest) -> Option<ScriptedReply> + Send + Sync + 'static,
) -> impl ReplyScript {
    move |request: &ReceivedRequest| say(request).unwrap_or_else(|| server.reply(request))
}

/// The tool of most tests, which accepts any arguments.
pub const TOOL: &str = r#"{"name":"t","inputSchema":{"type":"object"}}"#;

/// The session of every legacy server here.
const SESSION: &str = "the-session";

const LEGACY_INFO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"legacy","version":"1"}}"#;
const MODERN_INFO: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"public"}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#;

/// Returns the result of `initialize`, which opens this session.
pub fn initialized(request: &ReceivedRequest, session: &str) -> ScriptedReply {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{LEGACY_INFO}}}"#, request.id());
    let headers = format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
    ScriptedReply::http(200, &headers, &body)
}

impl ReplyScript for ScriptedUpstream {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        match (&*request.method(), self.era) {
            ("tools/call", _) => self.call.reply(request),
            ("tools/list", UpstreamEra::Legacy) => {
                ScriptedReply::result(request, &format!(r#"{{"tools":{}}}"#, self.tools()))
            }
            ("tools/list", UpstreamEra::Modern) => {
                let rest = r#""ttlMs":0,"cacheScope":"public","resultType":"complete""#;
                ScriptedReply::result(request, &format!(r#"{{"tools":{},{rest}}}"#, self.tools()))
            }
            ("server/discover", UpstreamEra::Modern) => ScriptedReply::result(request, MODERN_INFO),
            ("subscriptions/listen", UpstreamEra::Modern) => {
                self.changes(format!("data: {ACKNOWLEDGED}\n\n"), CHANGED)
            }
            ("initialize", UpstreamEra::Legacy) => initialized(request, SESSION),
            ("GET", UpstreamEra::Legacy) => self.changes(": open\n\n".to_owned(), CHANGED),
            ("GET", UpstreamEra::Modern) => ScriptedReply::http(405, "allow: POST\r\n", ""),
            // A message without a method is a response.
            ("notifications/initialized" | "notifications/cancelled" | "", UpstreamEra::Legacy) => {
                ScriptedReply::http(202, "", "")
            }
            (method, _) => {
                let error = format!(r#"{{"code":-32601,"message":"no method {method}"}}"#);
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id());
                ScriptedReply::http(404, "content-type: application/json\r\n", &body)
            }
        }
    }
}
