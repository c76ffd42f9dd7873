//! Servers that say exactly what a test has them say.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::http1::{Framing, Head, Reader};
use crate::json::{self, Node};

/// A request as the server got it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl Received {
    /// The JSON-RPC method, or the HTTP method where there is no body.
    pub(crate) fn method(&self) -> String {
        match self.body.is_empty() {
            true => self.head.start.split(' ').next().unwrap_or_default().to_owned(),
            false => self.message().find("method").map(Node::plain).unwrap_or_default(),
        }
    }

    pub(crate) fn message(&self) -> Node {
        json::read(&self.body)
    }

    pub(crate) fn params(&self) -> Node {
        self.message().get("params").clone()
    }

    /// The text of the id.
    pub(crate) fn id(&self) -> String {
        self.message().get("id").text()
    }
}

/// What goes over the wire for one request, and whether the connection ends behind it.
pub(crate) struct Reply {
    bytes: BoxStream<'static, Bytes>,
    last: bool,
}

impl Reply {
    /// These bytes and no more: the connection ends.
    pub(crate) fn raw(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: stream::iter([bytes.into()]).boxed(), last: true }
    }

    /// A whole response. `headers` are lines with their ends.
    pub(crate) fn http(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Self { bytes: stream::iter([text.into()]).boxed(), last: false }
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::http(200, "content-type: application/json\r\n", body)
    }

    /// The result of a request.
    pub(crate) fn result(request: &Received, result: &str) -> Self {
        Self::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id()))
    }

    /// A chunked response whose pieces come when the stream gives them. It never ends by itself.
    pub(crate) fn live(kind: &str, pieces: impl stream::Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::ending(kind, pieces.chain(stream::pending()))
    }

    /// The same, and it ends with the stream.
    pub(crate) fn ending(kind: &str, pieces: impl stream::Stream<Item = Bytes> + Send + 'static) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        let head = stream::once(async { Bytes::from(head) });
        let end = stream::once(async { Bytes::from_static(b"0\r\n\r\n") });
        Self { bytes: head.chain(pieces.map(|piece| chunk(&piece))).chain(end).boxed(), last: true }
    }

    /// A response that is a whole stream of events, in the given pieces.
    pub(crate) fn events(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let mut text = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n".to_vec();
        text.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
        pieces.into_iter().for_each(|piece| text.extend_from_slice(&chunk(&piece)));
        text.extend_from_slice(b"0\r\n\r\n");
        Self { bytes: stream::iter([text.into()]).boxed(), last: false }
    }

    /// Nothing, for as long as the other side waits.
    pub(crate) fn never() -> Self {
        Self { bytes: stream::pending().boxed(), last: true }
    }

    /// The same reply, once `ready` has come.
    pub(crate) fn after(self, ready: impl Future<Output = ()> + Send + 'static) -> Self {
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

/// Decides what is said to a request.
pub(crate) trait Script: Send + Sync + 'static {
    fn reply(&self, request: &Received) -> Reply;
}

impl<F: Fn(&Received) -> Reply + Send + Sync + 'static> Script for F {
    fn reply(&self, request: &Received) -> Reply {
        self(request)
    }
}

/// What a server has seen.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<Received>,
    /// The methods of requests whose connection was closed before the reply was over.
    pub(crate) dropped: Vec<String>,
}

impl Log {
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests.iter().filter(|request| request.method() == method).count()
    }

    /// The latest request of a method.
    #[track_caller]
    pub(crate) fn last(&self, method: &str) -> &Received {
        self.requests.iter().rfind(|request| request.method() == method).expect("such a request came")
    }
}

/// A running server. Dropping it closes its connections.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    log: watch::Receiver<Log>,
    _tasks: JoinSet<()>,
}

/// An address that refuses connections until a server is started there.
pub(crate) struct Reserved(TcpSocket);

impl Reserved {
    pub(crate) fn new() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    /// The address of a server that is gone.
    pub(crate) fn at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    pub(crate) fn start(self, script: impl Script) -> Upstream {
        let listener = self.0.listen(4096).unwrap();
        let (sender, log) = watch::channel(Log::default());
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::new(script), Arc::new(sender)));
        Upstream { address, log, _tasks: tasks }
    }
}

impl Upstream {
    pub(crate) fn start(script: impl Script) -> Self {
        Reserved::new().start(script)
    }

    /// Waits until the server has seen what is asked for; gives what `read` makes of the log then.
    pub(crate) async fn saw<T>(&self, seen: impl Fn(&Log) -> bool, read: impl FnOnce(&Log) -> T) -> T {
        let mut log = self.log.clone();
        let log = log.wait_for(|log| seen(log)).await.unwrap();
        read(&log)
    }

    /// What `read` makes of the log now.
    pub(crate) fn now<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&self.log.borrow())
    }
}

async fn accept(listener: TcpListener, script: Arc<dyn Script>, log: Arc<watch::Sender<Log>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.spawn(serve(stream, script.clone(), log.clone()));
    }
}

/// Serves one connection. It ends with the first write that fails.
async fn serve(stream: TcpStream, script: Arc<dyn Script>, log: Arc<watch::Sender<Log>>) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = Reader::new(reader);
    while let Ok(Some(head)) = reader.head().await {
        let Ok(body) = reader.body(head.framing(Framing::Length(0))).await else { return };
        let request = Received { head, body };
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
        // Nobody sends a second request before the first is answered: what can be read is the end.
        let written = tokio::select! {
            written = write => written,
            () = reader.end() => false,
        };
        if !written {
            log.send_modify(|log| log.dropped.push(request.method()));
        }
        if !written || reply.last {
            return;
        }
    }
}

// === a server that behaves ===

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// A server of MCP that does everything right; the replies to `tools/call` are the test's own.
pub(crate) struct Server {
    pub(crate) era: Era,
    /// The texts of the definitions. A change is announced.
    pub(crate) tools: watch::Receiver<Vec<String>>,
    pub(crate) call: Box<dyn Script>,
}

impl Server {
    /// A server with tools that do not change.
    pub(crate) fn new(era: Era, tools: &[&str], call: impl Script) -> Self {
        let (_, tools) = watch::channel(tools.iter().map(ToString::to_string).collect());
        Self { era, tools, call: Box::new(call) }
    }

    fn tools(&self) -> String {
        format!("[{}]", self.tools.borrow().join(","))
    }

    /// A stream that begins with `first` and announces every change of the tools.
    fn changes(&self, first: String, announcement: &'static str) -> Reply {
        let mut tools = self.tools.clone();
        tools.mark_unchanged();
        let rest = stream::unfold(tools, move |mut tools| async move {
            tools.changed().await.ok()?;
            Some((Bytes::from(format!("data: {announcement}\n\n")), tools))
        });
        Reply::live("text/event-stream", stream::iter([Bytes::from(first)]).chain(rest))
    }
}

/// A server that says what `say` wants to be said, and for the rest behaves.
pub(crate) fn but(
    server: impl Script,
    say: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static,
) -> impl Script {
    move |request: &Received| say(request).unwrap_or_else(|| server.reply(request))
}

/// The tools of most tests: it takes anything.
pub(crate) const TOOL: &str = r#"{"name":"t","inputSchema":{"type":"object"}}"#;

/// The session of every legacy server here.
const SESSION: &str = "the-session";

const LEGACY_INFO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"legacy","version":"1"}}"#;
const MODERN_INFO: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"public"}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#;

/// The result of `initialize`, which opens this session.
pub(crate) fn initialized(request: &Received, session: &str) -> Reply {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{LEGACY_INFO}}}"#, request.id());
    let headers = format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
    Reply::http(200, &headers, &body)
}

impl Script for Server {
    fn reply(&self, request: &Received) -> Reply {
        match (&*request.method(), self.era) {
            ("tools/call", _) => self.call.reply(request),
            ("tools/list", Era::Legacy) => {
                Reply::result(request, &format!(r#"{{"tools":{}}}"#, self.tools()))
            }
            ("tools/list", Era::Modern) => {
                let rest = r#""ttlMs":0,"cacheScope":"public","resultType":"complete""#;
                Reply::result(request, &format!(r#"{{"tools":{},{rest}}}"#, self.tools()))
            }
            ("server/discover", Era::Modern) => Reply::result(request, MODERN_INFO),
            ("subscriptions/listen", Era::Modern) => {
                self.changes(format!("data: {ACKNOWLEDGED}\n\n"), CHANGED)
            }
            ("initialize", Era::Legacy) => initialized(request, SESSION),
            ("GET", Era::Legacy) => self.changes(": open\n\n".to_owned(), CHANGED),
            ("GET", Era::Modern) => Reply::http(405, "allow: POST\r\n", ""),
            // What has no method is a response.
            ("notifications/initialized" | "notifications/cancelled" | "", Era::Legacy) => {
                Reply::http(202, "", "")
            }
            (method, _) => {
                let error = format!(r#"{{"code":-32601,"message":"no method {method}"}}"#);
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id());
                Reply::http(404, "content-type: application/json\r\n", &body)
            }
        }
    }
}
