//! The notifications of one request. While a call is suspended, they are kept for the next request of the client.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use toolyard_core::{ClientNotification, LogLevel, Object};
use toolyard_net::budget::ByteBudget;

use super::notice_queue::NoticeSender;
use super::progress::ProgressReporter;
use crate::wire::{RequestId, message, meta, method};

/// Receives the notifications of one request.
#[derive(Debug, Default)]
pub(in crate::server) struct NotificationSink {
    messages: Option<NoticeSender>,
    /// Memory budget of queued messages.
    budget: ByteBudget,
    /// Progress notifications, if the client wants them.
    progress: Option<Arc<ProgressReporter>>,
    /// Least severe log level that the client wants.
    min_log_level: Option<LogLevel>,
    /// Notifications while the call is suspended.
    missed: Option<MissedNotices>,
}

/// The latest notifications, as many as may be queued for a connected client.
#[derive(Debug)]
struct MissedNotices {
    notices: VecDeque<ClientNotification>,
    capacity: usize,
}

impl NotificationSink {
    /// Creates the sink of a request with this `_meta`. A modern request contains its log level.
    pub(in crate::server) fn new(meta: &Object, messages: Option<NoticeSender>, budget: &ByteBudget) -> Self {
        let min_log_level = meta.get_str(meta::LOG_LEVEL).and_then(|level| LogLevel::parse(&level));
        // A token is a string or a number, like an id.
        let token = meta.get(meta::PROGRESS_TOKEN).filter(|token| RequestId::parse(token).is_some());
        let token = token.zip(messages.as_ref());
        let progress = token.map(|(token, messages)| {
            Arc::new(ProgressReporter::new(token.clone(), messages.clone(), budget.clone()))
        });
        Self { messages, budget: budget.clone(), progress, min_log_level, missed: None }
    }

    /// Returns the queue for requests to the client; `None` if it accepts only the response.
    pub(in crate::server) const fn messages(&self) -> Option<&NoticeSender> {
        self.messages.as_ref()
    }

    pub(in crate::server) const fn progress(&self) -> Option<&Arc<ProgressReporter>> {
        self.progress.as_ref()
    }

    /// Returns the least severe log level that reaches the client.
    pub(in crate::server) fn log_level(&self) -> Option<LogLevel> {
        self.min_log_level.filter(|_| self.messages.is_some())
    }

    /// Sets the least severe log level that the client wants.
    pub(in crate::server) const fn set_min_log_level(&mut self, min_level: Option<LogLevel>) {
        self.min_log_level = min_level;
    }

    /// Notifies the client. The notification is dropped if the queue is full.
    pub(in crate::server) fn notify(&mut self, notice: ClientNotification) {
        if let Some(missed) = &mut self.missed {
            missed.record(notice, self.min_log_level);
            return;
        }
        match (notice, &self.messages) {
            (ClientNotification::Progress(body), _) => {
                self.progress.iter().for_each(|to| to.forward(body.clone()))
            }
            (ClientNotification::Log(body), Some(messages))
                if is_severe_enough(&body.params, self.min_log_level) =>
            {
                let _is_sent =
                    enqueue(messages, &self.budget, message::notification_with(method::LOG, &body));
            }
            (ClientNotification::Other { method, body }, Some(messages)) => {
                let _is_sent = enqueue(messages, &self.budget, message::notification_with(&method, &body));
            }
            (ClientNotification::Log(_) | ClientNotification::Other { .. }, _) => {}
        }
    }

    /// Keeps notifications from now on: the request ends, and the client returns with another one.
    pub(in crate::server) fn pause(&mut self) {
        let capacity = self.messages.as_ref().map_or(0, NoticeSender::capacity);
        let missed = MissedNotices { notices: VecDeque::new(), capacity };
        *self = Self { min_log_level: self.min_log_level, missed: Some(missed), ..Self::default() };
    }

    /// True while the call is suspended.
    pub(in crate::server) const fn is_paused(&self) -> bool {
        self.missed.is_some()
    }

    /// Continues with the next request of the client, which receives the kept notifications.
    pub(in crate::server) fn resume_as(&mut self, other: Self) {
        let missed = std::mem::replace(self, other).missed;
        missed.into_iter().flat_map(|missed| missed.notices).for_each(|notice| self.notify(notice));
    }
}

/// Queues a message; `false` if the queue is full or the memory budget is exhausted.
pub(in crate::server) fn enqueue(messages: &NoticeSender, budget: &ByteBudget, message: Bytes) -> bool {
    messages.try_send_with(|| budget.try_hold(message).ok())
}

impl MissedNotices {
    fn record(&mut self, notice: ClientNotification, min_level: Option<LogLevel>) {
        if matches!(&notice, ClientNotification::Log(body) if !is_severe_enough(&body.params, min_level)) {
            return;
        }
        self.notices.push_back(notice);
        if self.notices.len() > self.capacity {
            self.notices.pop_front();
        }
    }
}

/// True if a log message is at least as severe as `least`.
pub(in crate::server) fn is_severe_enough(params: &Object, min_level: Option<LogLevel>) -> bool {
    let level = params.get_str("level").and_then(|level| LogLevel::parse(&level));
    level.zip(min_level).is_some_and(|(level, min_level)| level >= min_level)
}
