//! A server with one answer for each request.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};

/// Reaction to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Sends a response and keeps the connection open for the next request.
    Text(String),
    /// Sends a response and closes the connection.
    Last(String),
    /// Sends the beginning of a response, then nothing.
    Stall(String),
    /// Sends nothing and keeps the connection open.
    Silence,
    /// Resets the connection.
    Reset,
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Answer> for ScriptedReply {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Text(text) => Self::complete(text),
            Answer::Last(text) => Self::raw(text),
            Answer::Stall(text) => Self::stalled(text),
            Answer::Silence => Self::never(),
            Answer::Reset => Self::reset(),
        }
    }
}

/// A server with one answer for each request, in order of arrival over all connections. Further requests get none.
pub(crate) struct Server(TestUpstream);

impl Server {
    pub(crate) async fn start(answers: &[Answer]) -> Self {
        let (answers, next) = (answers.to_vec(), AtomicUsize::new(0));
        Self(TestUpstream::start(move |_: &ReceivedRequest| {
            let answer = answers.get(next.fetch_add(1, Ordering::Relaxed));
            answer.map_or_else(|| ScriptedReply::raw(""), |answer| answer.clone().into())
        }))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.0.address)
    }

    /// Returns the requests so far, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.0.now(|log| log.requests.iter().map(ReceivedRequest::text).collect())
    }

    /// Waits for `count` requests.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<String> {
        self.0.saw(|log| log.requests.len() >= count, |_| ()).await;
        self.requests()
    }

    /// Waits until a client closes its connection without a response.
    pub(crate) async fn hung_up(&self) {
        self.0.saw(|log| !log.dropped.is_empty(), |_| ()).await;
    }

    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}
