//! Progress notifications of one request: those of the server, and heartbeats while the server sends none. Clients
//! commonly time out after 60 s without progress.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolyard_core::{Json, NotificationBody, Object};
use toolyard_net::budget::ByteBudget;

use super::notice_queue::NoticeSender;
use super::notification_sink::enqueue;
use crate::wire::{message, meta, method};

/// The step of a heartbeat: absolute minimum, and relative to the value. It is too small to be visible.
const HEARTBEAT_STEP: f64 = 1e-6;

/// The progress notifications of a request.
#[derive(Debug)]
pub(in crate::server) struct ProgressReporter {
    /// The progress token of the client.
    token: Json,
    messages: NoticeSender,
    budget: ByteBudget,
    last: Mutex<LastProgress>,
}

/// The last progress notification.
#[derive(Debug)]
struct LastProgress {
    /// Time of the notification, or of the request before the first one.
    sent_at: Instant,
    /// Parameters; empty before the first notification.
    params: Object,
    /// True once a heartbeat was sent, so that values of the server may have to be raised.
    has_heartbeat: bool,
}

impl ProgressReporter {
    pub(super) fn new(token: Json, messages: NoticeSender, budget: ByteBudget) -> Self {
        let last = LastProgress { sent_at: Instant::now(), params: Object::new(), has_heartbeat: false };
        Self { token, messages, budget, last: Mutex::new(last) }
    }

    /// Forwards progress of the server. After a heartbeat, a value that does not exceed the last one is raised above
    /// it, since values have to increase (2025-11-25, basic/utilities/progress, progress flow).
    pub(super) fn forward(&self, body: NotificationBody) {
        let NotificationBody { mut params, envelope } = body;
        let mut last = self.lock_last();
        if last.has_heartbeat
            && let Some(last) = progress_value(&last.params)
            && progress_value(&params).is_none_or(|value| value <= last)
        {
            params.set("progress", slightly_above(last));
        }
        self.send(&mut last, NotificationBody { params, envelope });
    }

    /// Repeats the last notification with a slightly greater value.
    fn send_heartbeat(&self) {
        let mut last = self.lock_last();
        let further = progress_value(&last.params).map_or_else(|| Json::integer(0), slightly_above);
        let params = last.params.clone().with("progress", further);
        last.has_heartbeat = true;
        // Also if the queue is full, so that the next attempt is one interval later.
        last.sent_at = Instant::now();
        self.send(&mut last, params.into());
    }

    fn send(&self, last: &mut LastProgress, mut body: NotificationBody) {
        body.params.set(meta::PROGRESS_TOKEN, self.token.clone());
        // A full queue drops the notification: a slow reader gets later ones.
        if enqueue(&self.messages, &self.budget, message::notification_with(method::PROGRESS, &body)) {
            let params = body.params;
            *last = LastProgress { sent_at: Instant::now(), params, has_heartbeat: last.has_heartbeat };
        }
    }

    fn lock_last(&self) -> MutexGuard<'_, LastProgress> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the numeric value of a progress notification.
fn progress_value(params: &Object) -> Option<f64> {
    let value = params.get("progress").filter(|value| value.is_number())?;
    value.as_text().parse().ok().filter(|value: &f64| value.is_finite())
}

/// Returns a slightly greater value.
fn slightly_above(last: f64) -> Json {
    let further = last + (last.abs() * HEARTBEAT_STEP).max(HEARTBEAT_STEP);
    Json::from_value(&further.min(f64::MAX).into())
}

/// Runs a request. While its client wants progress and gets none for `every`, it gets a heartbeat. The timer exists
/// only for such requests, and only once they wait.
pub(in crate::server) async fn with_heartbeat<T>(
    progress: Option<Arc<ProgressReporter>>,
    every: Duration,
    work: impl Future<Output = T>,
) -> T {
    let Some(progress) = progress else { return work.await };
    let mut work = pin!(work);
    loop {
        let due = progress.lock_last().sent_at + every;
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep_until(due) => if progress.lock_last().sent_at + every <= Instant::now() { progress.send_heartbeat() }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::time::sleep;

    use super::*;
    use crate::server::notify::notice_queue::notice_queue;

    const EVERY: Duration = Duration::from_secs(20);

    /// Checks the notifications that a client gets, with their times, while a server sends these after so many seconds
    /// each.
    async fn check(server: &[(u64, &str)], end: u64, expect: &[&str]) {
        let (sender, mut messages) = notice_queue(100);
        let progress = Arc::new(ProgressReporter::new(Json::integer(1), sender, ByteBudget::default()));
        let start = Instant::now();
        let work = async {
            for (after, params) in server {
                sleep(Duration::from_secs(*after)).await;
                progress.forward(Object::parse(params.to_string()).unwrap().into());
            }
            sleep(Duration::from_secs(end)).await;
        };
        let mut lines = Vec::new();
        let mut record = |message: Bytes| {
            let text = String::from_utf8(message.to_vec()).unwrap();
            let params = text.split_once(r#""params":"#).unwrap().1;
            let params = params.strip_suffix(r#","progressToken":1}}"#).unwrap();
            lines.push(format!("{} {params}}}", start.elapsed().as_secs()));
        };
        {
            let mut work = pin!(with_heartbeat(Some(progress.clone()), EVERY, work));
            loop {
                tokio::select! {
                    biased;
                    Some(message) = messages.recv() => record(message),
                    () = &mut work => break,
                }
            }
        }
        while let Some(message) = messages.try_recv() {
            record(message);
        }
        assert_eq!(lines, expect);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_triggers_heartbeats() {
        check(&[], 19, &[]).await;
        check(&[], 70, &[r#"20 {"progress":0}"#, r#"40 {"progress":1e-6}"#, r#"60 {"progress":2e-6}"#]).await;
        check(
            &[(19, r#"{"progress":1.10}"#), (19, r#"{"progress":2}"#)],
            19,
            &[r#"19 {"progress":1.10}"#, r#"38 {"progress":2}"#],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn progress_values_increase() {
        // The last notification is repeated with a slightly greater value; values of the server are raised if
        // necessary.
        let server = [
            (5, r#"{"progress":50,"total":100,"x":1}"#),
            (25, r#"{"progress":50,"total":100}"#),
            (5, r#"{"progress":51.0,"message":"on"}"#),
        ];
        check(
            &server,
            25,
            &[
                r#"5 {"progress":50,"total":100,"x":1}"#,
                r#"25 {"progress":50.00005,"total":100,"x":1}"#,
                r#"30 {"progress":50.000100000050004,"total":100}"#,
                r#"35 {"progress":51.0,"message":"on"}"#,
                r#"55 {"progress":51.000051,"message":"on"}"#,
            ],
        )
        .await;
        // Before any heartbeat, values of the server are forwarded unchanged.
        check(
            &[(1, r#"{"progress":2}"#), (1, r#"{"progress":1}"#), (1, r#"{"progress":"x"}"#)],
            1,
            &[r#"1 {"progress":2}"#, r#"2 {"progress":1}"#, r#"3 {"progress":"x"}"#],
        )
        .await;
    }
}
