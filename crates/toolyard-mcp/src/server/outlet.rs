//! Where the messages of one request go. Those of a call that waits for its client to come back go nowhere: what it is
//! told meanwhile is kept for its next request.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use toolyard_core::{LogLevel, Notice, Object};

use super::progress::Progress;
use crate::wire::{Id, message, meta, method};

/// Where messages of one request go.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    messages: Option<mpsc::Sender<Bytes>>,
    /// What the client is told of progress, if it wants to be.
    progress: Option<Arc<Progress>>,
    /// The least severe log that it wants.
    log: Option<LogLevel>,
    /// What its call says while no request of it is open.
    missed: Option<Missed>,
}

/// The latest notices, as many as may wait for a client that listens.
#[derive(Debug)]
struct Missed {
    notices: VecDeque<Notice>,
    most: usize,
}

impl Outlet {
    /// Where `messages` go of a request that said `meta` of itself. A modern request says how much log it wants.
    pub(super) fn new(meta: &Object, messages: Option<mpsc::Sender<Bytes>>) -> Self {
        let log = meta.get_str(meta::LOG_LEVEL).and_then(|level| LogLevel::parse(&level));
        // A token is a string or a number, as an id is.
        let token = meta.get(meta::PROGRESS_TOKEN).filter(|token| Id::parse(token).is_some());
        let token = token.zip(messages.as_ref());
        let progress =
            token.map(|(token, messages)| Arc::new(Progress::new(token.clone(), messages.clone())));
        Self { messages, progress, log, missed: None }
    }

    /// Where requests are put to the client; `None` where it takes nothing but the answer.
    pub(super) const fn messages(&self) -> Option<&mpsc::Sender<Bytes>> {
        self.messages.as_ref()
    }

    pub(super) const fn progress(&self) -> Option<&Arc<Progress>> {
        self.progress.as_ref()
    }

    /// The least severe log that reaches the client.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.log.filter(|_| self.messages.is_some())
    }

    /// The least severe log that the client wants, from now on.
    pub(super) const fn set_log(&mut self, least: Option<LogLevel>) {
        self.log = least;
    }

    /// Tells the client what it wants to hear. A full queue drops the notice.
    pub(super) fn tell(&mut self, notice: Notice) {
        if let Some(missed) = &mut self.missed {
            missed.keep(notice, self.log);
            return;
        }
        match (notice, &self.messages) {
            (Notice::Progress(params), _) => self.progress.iter().for_each(|to| to.tell(params.clone())),
            (Notice::Log(params), Some(messages)) if is_wanted(&params, self.log) => {
                let _full = messages.try_send(message::notification(method::LOG, &params));
            }
            (Notice::Other { method, params }, Some(messages)) => {
                let _full = messages.try_send(message::notification(&method, &params));
            }
            (Notice::Log(_) | Notice::Other { .. }, _) => {}
        }
    }

    /// The request ends, and its client comes back with another one.
    pub(super) fn pause(&mut self) {
        let most = self.messages.as_ref().map_or(0, mpsc::Sender::max_capacity);
        let missed = Missed { notices: VecDeque::new(), most };
        *self = Self { log: self.log, missed: Some(missed), ..Self::default() };
    }

    /// Whether the call waits for its client to come back.
    pub(super) const fn is_paused(&self) -> bool {
        self.missed.is_some()
    }

    /// The client is back with another request, by which it hears what was said meanwhile.
    pub(super) fn go_on_as(&mut self, other: Self) {
        let missed = std::mem::replace(self, other).missed;
        missed.into_iter().flat_map(|missed| missed.notices).for_each(|notice| self.tell(notice));
    }
}

impl Missed {
    fn keep(&mut self, notice: Notice, least: Option<LogLevel>) {
        if matches!(&notice, Notice::Log(params) if !is_wanted(params, least)) {
            return;
        }
        self.notices.push_back(notice);
        if self.notices.len() > self.most {
            self.notices.pop_front();
        }
    }
}

/// Whether a line of log is severe enough for who wants none below `least`.
pub(super) fn is_wanted(params: &Object, least: Option<LogLevel>) -> bool {
    let level = params.get_str("level").and_then(|level| LogLevel::parse(&level));
    level.zip(least).is_some_and(|(level, least)| level >= least)
}
