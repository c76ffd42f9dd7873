//! A server of HTTP+SSE, the transport of 2024-11-05, that says exactly what a test has it say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

use crate::upstream::{Received, Reply, Script, TOOL};

/// What is said on the stream of one session. Dropping the last one ends the stream.
#[derive(Clone)]
pub(crate) struct Voice(mpsc::UnboundedSender<Bytes>);

impl Voice {
    /// Says a message.
    pub(crate) fn say(&self, message: &str) {
        self.raw(format!("event: message\ndata: {message}\n\n"));
    }

    /// Says the result of a request.
    pub(crate) fn result(&self, request: &Received, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id()));
    }

    /// Whatever it is.
    pub(crate) fn raw(&self, text: impl Into<Bytes>) {
        // The other side may have heard enough.
        let _gone = self.0.send(text.into());
    }
}

/// Decides what is said to a call, and how the message that carries it is answered.
type OnCall = dyn Fn(&Received, &Voice) -> Reply + Send + Sync;

/// The sessions of a server, by their numbers, which begin with 1.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    voices: HashMap<usize, Voice>,
    opened: usize,
}

impl Sessions {
    /// Opens one.
    fn open(&self) -> (usize, mpsc::UnboundedReceiver<Bytes>) {
        let (sender, said) = mpsc::unbounded_channel();
        let mut table = self.0.lock().unwrap();
        table.opened += 1;
        let number = table.opened;
        table.voices.insert(number, Voice(sender));
        (number, said)
    }

    pub(crate) fn get(&self, number: usize) -> Option<Voice> {
        self.0.lock().unwrap().voices.get(&number).cloned()
    }

    /// Ends the streams of all.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap().voices.clear();
    }

    /// Has them forgotten, with their streams open.
    pub(crate) fn forget(&self) -> Vec<Voice> {
        self.0.lock().unwrap().voices.drain().map(|(_, voice)| voice).collect()
    }

    pub(crate) fn opened(&self) -> usize {
        self.0.lock().unwrap().opened
    }
}

/// A server with one tool, whose stream is at any path and whose messages go to `/messages`.
pub(crate) struct SseServer {
    sessions: Sessions,
    /// The data of the first event; `NUMBER` stands for the session.
    endpoint: &'static str,
    on_call: Box<OnCall>,
}

impl SseServer {
    pub(crate) fn new(
        sessions: &Sessions,
        on_call: impl Fn(&Received, &Voice) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self { sessions: sessions.clone(), endpoint: "/messages?session=NUMBER", on_call: Box::new(on_call) }
    }

    /// With another first event.
    pub(crate) fn calling_itself(self, endpoint: &'static str) -> Self {
        Self { endpoint, ..self }
    }

    fn stream(&self) -> Reply {
        let (number, said) = self.sessions.open();
        let endpoint = self.endpoint.replace("NUMBER", &number.to_string());
        let voice = self.sessions.get(number).unwrap();
        voice.raw(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n"));
        Reply::ending(
            "text/event-stream",
            stream::unfold(said, async |mut said| {
                let piece = said.recv().await?;
                Some((piece, said))
            }),
        )
    }
}

/// What a message is answered with, whatever it says.
pub(crate) fn accepted() -> Reply {
    Reply::http(202, "", "Accepted")
}

/// An answer to any call.
pub(crate) fn good(request: &Received, voice: &Voice) -> Reply {
    voice.result(request, r#"{"good":1}"#);
    accepted()
}

const INFO: &str = r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sse","version":"1"}}"#;

impl Script for SseServer {
    fn reply(&self, request: &Received) -> Reply {
        let method = request.method();
        if method == "GET" {
            return self.stream();
        }
        let target = request.head.start.split(' ').nth(1).unwrap_or_default();
        let Some(session) = target.strip_prefix("/messages?session=") else {
            return Reply::http(405, "", "Method Not Allowed");
        };
        let Some(voice) = session.parse().ok().and_then(|number| self.sessions.get(number)) else {
            return Reply::http(404, "", "Could not find session");
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
