//! An upstream of HTTP+SSE, the transport of 2024-11-05, that sends exactly the bytes that a test specifies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;
use toolyard_testing::upstream::{ReceivedRequest, ReplyScript, ScriptedReply, TOOL};

/// The sender of the stream of one session. The stream ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct SessionStream(mpsc::UnboundedSender<Bytes>);

impl SessionStream {
    /// Sends a message.
    pub(crate) fn say(&self, message: &str) {
        self.raw(format!("event: message\ndata: {message}\n\n"));
    }

    /// Sends the result of a request.
    pub(crate) fn result(&self, request: &ReceivedRequest, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id()));
    }

    /// Sends a text verbatim.
    pub(crate) fn raw(&self, text: impl Into<Bytes>) {
        // The gateway may have closed the stream.
        let _gone = self.0.send(text.into());
    }
}

/// Answers a call on the stream, and returns the response to the POST request with its message.
type SseCallScript = dyn Fn(&ReceivedRequest, &SessionStream) -> ScriptedReply + Send + Sync;

/// The sessions of a server by number, from 1.
#[derive(Clone, Default)]
pub(crate) struct SseSessions(Arc<Mutex<SseSessionTable>>);

#[derive(Default)]
struct SseSessionTable {
    voices: HashMap<usize, SessionStream>,
    opened: usize,
}

impl SseSessions {
    /// Opens a session.
    fn open(&self) -> (usize, mpsc::UnboundedReceiver<Bytes>) {
        let (sender, said) = mpsc::unbounded_channel();
        let mut table = self.0.lock().unwrap();
        table.opened += 1;
        let number = table.opened;
        table.voices.insert(number, SessionStream(sender));
        (number, said)
    }

    pub(crate) fn get(&self, number: usize) -> Option<SessionStream> {
        self.0.lock().unwrap().voices.get(&number).cloned()
    }

    /// Ends all streams.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap().voices.clear();
    }

    /// Forgets all sessions, and returns their streams, which stay open.
    pub(crate) fn forget(&self) -> Vec<SessionStream> {
        self.0.lock().unwrap().voices.drain().map(|(_, voice)| voice).collect()
    }

    pub(crate) fn opened(&self) -> usize {
        self.0.lock().unwrap().opened
    }
}

/// A server with one tool; its stream is at any path, and its messages go to `/messages`.
pub(crate) struct SseServer {
    sessions: SseSessions,
    /// The data of the first event; `NUMBER` stands for the session.
    endpoint: &'static str,
    on_call: Box<SseCallScript>,
}

impl SseServer {
    pub(crate) fn new(
        sessions: &SseSessions,
        on_call: impl Fn(&ReceivedRequest, &SessionStream) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        Self { sessions: sessions.clone(), endpoint: "/messages?session=NUMBER", on_call: Box::new(on_call) }
    }

    /// Replaces the data of the first event.
    pub(crate) fn calling_itself(self, endpoint: &'static str) -> Self {
        Self { endpoint, ..self }
    }

    fn stream(&self) -> ScriptedReply {
        let (number, said) = self.sessions.open();
        let endpoint = self.endpoint.replace("NUMBER", &number.to_string());
        let voice = self.sessions.get(number).unwrap();
        voice.raw(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n"));
        ScriptedReply::ending(
            "text/event-stream",
            stream::unfold(said, async |mut said| {
                let piece = said.recv().await?;
                Some((piece, said))
            }),
        )
    }
}

/// The response to any message that the server accepts.
pub(crate) fn accepted() -> ScriptedReply {
    ScriptedReply::http(202, "", "Accepted")
}

/// Answers any call with a good result.
pub(crate) fn good(request: &ReceivedRequest, voice: &SessionStream) -> ScriptedReply {
    voice.result(request, r#"{"good":1}"#);
    accepted()
}

const INFO: &str = r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sse","version":"1"}}"#;

impl ReplyScript for SseServer {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        let method = request.method();
        if method == "GET" {
            return self.stream();
        }
        let target = request.head.start.split(' ').nth(1).unwrap_or_default();
        let Some(session) = target.strip_prefix("/messages?session=") else {
            return ScriptedReply::http(405, "", "Method Not Allowed");
        };
        let Some(voice) = session.parse().ok().and_then(|number| self.sessions.get(number)) else {
            return ScriptedReply::http(404, "", "Could not find session");
        };
        match &*method {
            "tools/call" => return (self.on_call)(request, &voice),
            "initialize" => voice.result(request, INFO),
            "tools/list" => voice.result(request, &format!(r#"{{"tools":[{TOOL}]}}"#)),
            _ => {}
        }
        accepted()
    }
}
