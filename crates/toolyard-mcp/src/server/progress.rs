//! What a client is told of the progress of one request: what the server says, and where that says nothing for long,
//! that the request goes on. Clients commonly give up after 60 s, unless there is progress.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolyard_core::{Json, Object};

use crate::wire::{message, meta, method};

/// The smallest step that a heartbeat takes, and the share of the value that it takes: what a client shows stays as it is.
const STEP: f64 = 1e-6;

/// The progress of a request whose client wants to be told.
#[derive(Debug)]
pub(super) struct Progress {
    /// What the client calls it.
    token: Json,
    messages: mpsc::Sender<Bytes>,
    told: Mutex<Told>,
}

/// What the client was told last.
#[derive(Debug)]
struct Told {
    /// When, or when it asked.
    at: Instant,
    /// Nothing at first.
    params: Object,
    /// Whether it was told something of our own, so that the server does not know how far it is.
    of_ours: bool,
}

impl Progress {
    pub(super) fn new(token: Json, messages: mpsc::Sender<Bytes>) -> Self {
        let told = Told { at: Instant::now(), params: Object::new(), of_ours: false };
        Self { token, messages, told: Mutex::new(told) }
    }

    /// Passes on what the server says, as it is. After a heartbeat, a value that is no greater than the last one is
    /// lifted above it, because values have to increase (2025-11-25, basic/utilities/progress, progress flow).
    pub(super) fn tell(&self, mut params: Object) {
        let mut told = self.told();
        if told.of_ours
            && let Some(last) = value(&told.params)
            && value(&params).is_none_or(|value| value <= last)
        {
            params.set("progress", above(last));
        }
        self.send(&mut told, params);
    }

    /// Says the last again, a tiny step further.
    fn beat(&self) {
        let mut told = self.told();
        let further = value(&told.params).map_or_else(|| Json::integer(0), above);
        let params = told.params.clone().with("progress", further);
        told.of_ours = true;
        // Where the client does not read, there is no use in trying until the next is due.
        told.at = Instant::now();
        self.send(&mut told, params);
    }

    fn send(&self, told: &mut Told, mut params: Object) {
        params.set(meta::PROGRESS_TOKEN, self.token.clone());
        // A full queue drops the notice: whoever reads slowly learns of later progress.
        if self.messages.try_send(message::notification(method::PROGRESS, &params)).is_ok() {
            *told = Told { at: Instant::now(), params, of_ours: told.of_ours };
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far it is.
fn value(params: &Object) -> Option<f64> {
    let value = params.get("progress").filter(|value| value.is_number())?;
    value.as_text().parse().ok().filter(|value: &f64| value.is_finite())
}

/// A value that is a little greater.
fn above(last: f64) -> Json {
    let further = last + (last.abs() * STEP).max(STEP);
    Json::from_value(&further.min(f64::MAX).into())
}

/// Does the work of a request. Where its client wants to hear of progress and does not for as long as `every`, it is
/// told that the work goes on. Only such work has a timer, and that only once it waits for something.
pub(super) async fn alive<T>(
    progress: Option<Arc<Progress>>,
    every: Duration,
    work: impl Future<Output = T>,
) -> T {
    let Some(progress) = progress else { return work.await };
    let mut work = pin!(work);
    loop {
        let due = progress.told().at + every;
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep_until(due) => if progress.told().at + every <= Instant::now() { progress.beat() }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const EVERY: Duration = Duration::from_secs(20);

    /// What a client is told while a server says these things after so many seconds each, and when.
    async fn check(server: &[(u64, &str)], end: u64, expect: &[&str]) {
        let (sender, mut messages) = mpsc::channel(100);
        let progress = Arc::new(Progress::new(Json::integer(1), sender));
        let start = Instant::now();
        let work = async {
            for (after, params) in server {
                sleep(Duration::from_secs(*after)).await;
                progress.tell(Object::parse(params.to_string()).unwrap());
            }
            sleep(Duration::from_secs(end)).await;
        };
        let mut told = Vec::new();
        let mut hear = |message: Bytes| {
            let text = String::from_utf8(message.to_vec()).unwrap();
            let params = text.split_once(r#""params":"#).unwrap().1;
            let params = params.strip_suffix(r#","progressToken":1}}"#).unwrap();
            told.push(format!("{} {params}}}", start.elapsed().as_secs()));
        };
        {
            let mut work = pin!(alive(Some(progress.clone()), EVERY, work));
            loop {
                tokio::select! {
                    biased;
                    Some(message) = messages.recv() => hear(message),
                    () = &mut work => break,
                }
            }
        }
        while let Ok(message) = messages.try_recv() {
            hear(message);
        }
        assert_eq!(told, expect);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_in_silence() {
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
    async fn values_increase() {
        // What was said last is said again, a little further; what the server says then is lifted as far as it has to be.
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
        // Before any heartbeat it is the server's affair what it says.
        check(
            &[(1, r#"{"progress":2}"#), (1, r#"{"progress":1}"#), (1, r#"{"progress":"x"}"#)],
            1,
            &[r#"1 {"progress":2}"#, r#"2 {"progress":1}"#, r#"3 {"progress":"x"}"#],
        )
        .await;
    }
}
