//! Consumption of requests: subscribes once the broker can be reached, handles a limited number of requests at a time, and
//! lets them finish when it stops.
//!
//! Worker, bridge, scripts manager and agents are consumers. They share how a request is acknowledged, cancelled and answered.

mod recent;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use toolyard_manifest::BusSettings;

use self::recent::RecentIds;
use crate::agents::record::AgentTaskCancelRequest;
use crate::bus::{BusError, Deliveries, Delivery, MessageBus, Subscription};
use crate::message::ToolCancel;
use crate::pump::{Backoff, subscribe_when_reachable};
use crate::topic::Topic;

/// Handles requests.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    /// Handles a request and settles its delivery. Dropping the future stops the work.
    fn handle(self: Arc<Self>, delivery: Delivery) -> BoxFuture<'static, ()>;

    /// Stops the request of this id, if it runs here.
    fn cancel(&self, _id: &str) {}
}

/// Options of a consumer.
pub(crate) struct ConsumerOptions {
    /// The requests.
    pub(crate) subscriptions: Vec<Subscription>,
    /// Maximum number of requests at a time.
    pub(crate) concurrent: usize,
    /// Topic of the messages that stop requests.
    pub(crate) cancellations: Option<Topic>,
}

/// A running consumer. Dropping it stops it at once; requests that are not acknowledged go to other members.
#[derive(Debug)]
pub(crate) struct Consumer {
    tasks: JoinSet<()>,
    stopping: watch::Sender<Option<Duration>>,
    ready: watch::Receiver<bool>,
}

impl Consumer {
    /// Starts to handle requests.
    pub(crate) fn start(
        bus: Arc<dyn MessageBus>,
        handler: Arc<dyn RequestHandler>,
        options: ConsumerOptions,
        settings: &BusSettings,
    ) -> Self {
        let (stopping, stop) = watch::channel(None);
        let (is_ready, ready) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let backoff = Backoff::new(settings);
        tasks.spawn(run(bus, handler, options, backoff, stop, is_ready));
        Self { tasks, stopping, ready }
    }

    /// Returns once the consumer has subscribed; `false` if the broker refuses that.
    pub(crate) fn subscribed(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut ready = self.ready.clone();
        async move { ready.wait_for(|ready| *ready).await.is_ok() }
    }

    /// Takes no further requests, and waits for the running ones.
    pub(crate) async fn stop(mut self, drain: Duration) {
        self.stopping.send_replace(Some(drain));
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn run(
    bus: Arc<dyn MessageBus>,
    handler: Arc<dyn RequestHandler>,
    options: ConsumerOptions,
    mut backoff: Backoff,
    mut stop: watch::Receiver<Option<Duration>>,
    ready: watch::Sender<bool>,
) {
    let subscribed = tokio::select! {
        subscribed = subscribe(&*bus, &options, &mut backoff) => subscribed,
        _ = stopped(&mut stop) => return,
    };
    let (mut requests, mut cancellations) = match subscribed {
        Ok(subscribed) => subscribed,
        Err(error) => {
            let topics: Vec<_> = options.subscriptions.iter().map(|it| it.pattern.as_str()).collect();
            let error = &error as &dyn std::error::Error;
            return tracing::error!(error, ?topics, "the broker refuses a subscription");
        }
    };
    ready.send_replace(true);
    let mut running = JoinSet::new();
    let drain = loop {
        tokio::select! {
            drain = stopped(&mut stop) => break drain,
            Some(ended) = running.join_next() => report_panic(ended),
            Some(delivery) = next(&mut cancellations) => cancel(&*handler, delivery).await,
            Some(delivery) = requests.next(), if running.len() < options.concurrent => {
                running.spawn(handler.clone().handle(delivery));
            }
        }
    };
    drop(requests);
    let drained = async {
        while !running.is_empty() {
            tokio::select! {
                Some(ended) = running.join_next() => report_panic(ended),
                Some(delivery) = next(&mut cancellations) => cancel(&*handler, delivery).await,
            }
        }
    };
    // Dropping the rest stops the requests; their messages go to other members unless they are acknowledged.
    drop(timeout(drain, drained).await);
}

/// Subscribes as soon as the broker can be reached: to cancellations first, so that there is none before its request.
async fn subscribe(
    bus: &dyn MessageBus,
    options: &ConsumerOptions,
    backoff: &mut Backoff,
) -> Result<(RequestQueues, Option<Deliveries>), BusError> {
    let cancellations = match options.cancellations.clone() {
        Some(topic) => Some(subscribe_when_reachable(bus, &Subscription::alone(topic), backoff).await?),
        None => None,
    };
    let mut requests = Vec::new();
    for subscription in &options.subscriptions {
        requests.push(subscribe_when_reachable(bus, subscription, backoff).await?);
    }
    Ok((RequestQueues(requests), cancellations))
}

/// The requests of all subscriptions.
struct RequestQueues(Vec<Deliveries>);

impl RequestQueues {
    /// Returns the next request; `None` if the bus has ended.
    async fn next(&mut self) -> Option<Delivery> {
        let queues = &mut self.0;
        poll_fn(|context| {
            let position = queues.iter_mut().enumerate().find_map(|(at, queue)| {
                let Poll::Ready(delivery) = queue.poll_next(context) else { return None };
                Some((at, delivery))
            });
            let Some((at, delivery)) = position else { return Poll::Pending };
            // A queue that is always full must not keep the others waiting.
            queues.rotate_left(at + 1);
            Poll::Ready(delivery)
        })
        .await
    }
}

async fn next(deliveries: &mut Option<Deliveries>) -> Option<Delivery> {
    match deliveries {
        Some(deliveries) => deliveries.next().await,
        None => None,
    }
}

async fn cancel(handler: &dyn RequestHandler, delivery: Delivery) {
    let envelope = &delivery.envelope;
    let id = match envelope.is::<AgentTaskCancelRequest>() {
        true => envelope.read().map(|AgentTaskCancelRequest { task_id, .. }| task_id),
        false => envelope.read().map(|ToolCancel { tool_call_id }| tool_call_id),
    };
    match id {
        Ok(id) => handler.cancel(&id),
        Err(problem) => tracing::debug!(%problem, "dropped a message on {}", delivery.topic),
    }
    // A subscription without a group has nothing to return.
    drop(delivery.ack().await);
}

/// Waits until the consumer is stopped, and returns the time for its running requests.
async fn stopped(stop: &mut watch::Receiver<Option<Duration>>) -> Duration {
    // Without its sender the consumer was dropped.
    stop.wait_for(Option::is_some).await.ok().and_then(|drain| *drain).unwrap_or_default()
}

/// A panic fails its own request only, whose message returns to the queue.
fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = &error as &dyn std::error::Error, "a request on the bus has panicked");
    }
}

/// Running requests by their ids, to cancel them. A request that was cancelled stays until it ends.
#[derive(Debug, Default)]
pub(crate) struct RunningRequests(Mutex<HashMap<String, Option<oneshot::Sender<()>>>>);

/// A running request, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningRequest<'a> {
    requests: &'a RunningRequests,
    id: String,
    is_first: bool,
}

impl RunningRequests {
    /// Registers a running request. Its receiver gets a value once it is cancelled.
    pub(crate) fn register(&self, id: &str) -> (RunningRequest<'_>, oneshot::Receiver<()>) {
        let (cancel, cancelled) = oneshot::channel();
        let mut requests = self.lock();
        // The first request of an id is the one that a cancellation reaches.
        let is_first = !requests.contains_key(id);
        if is_first {
            requests.insert(id.to_owned(), Some(cancel));
        }
        drop(requests);
        (RunningRequest { requests: self, id: id.to_owned(), is_first }, cancelled)
    }

    /// Cancels the request of this id.
    pub(crate) fn cancel(&self, id: &str) {
        // It may have ended, or run elsewhere.
        if let Some(cancel) = self.lock().get_mut(id).and_then(Option::take) {
            let _ended = cancel.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<oneshot::Sender<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if self.is_first {
            self.requests.lock().remove(&self.id);
        }
    }
}

/// Acknowledges requests before they run, so that each runs at most once.
#[derive(Debug, Default)]
pub(crate) struct AtMostOnce(Mutex<RecentIds>);

/// A request that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcknowledgedRequest {
    /// It has not run.
    New,
    /// An earlier delivery of it may have run.
    MayHaveRun,
}

impl AtMostOnce {
    /// Acknowledges a delivery; `None` if there is nothing to do, because another delivery follows, or because the request
    /// was sent twice and its first copy is answered.
    pub(crate) async fn acknowledge(&self, delivery: Delivery) -> Option<AcknowledgedRequest> {
        let attempt = delivery.attempt;
        let is_new = {
            let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            recent.insert(&delivery.envelope.message_id)
        };
        if let Err(error) = delivery.ack().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "a request was not run, because it could not be acknowledged");
            return None;
        }
        match (attempt, is_new) {
            (1, true) => Some(AcknowledgedRequest::New),
            (1, false) => {
                tracing::debug!("dropped a request that was sent twice");
                None
            }
            _ => Some(AcknowledgedRequest::MayHaveRun),
        }
    }
}

/// Logs a failure of the bus at the end of a request, which has no other consequence.
pub(crate) fn log_failure(settled: Result<(), BusError>) {
    if let Err(error) = settled {
        tracing::warn!(error = &error as &dyn std::error::Error, "the bus failed at the end of a request");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_reaches_the_first_request_of_an_id() {
        let requests = RunningRequests::default();
        let (first, mut of_first) = requests.register("a");
        let (second, mut of_second) = requests.register("a");
        drop(second);
        requests.cancel("b");
        of_first.try_recv().unwrap_err();
        requests.cancel("a");
        assert_eq!(of_first.try_recv(), Ok(()), "the end of the second request changes nothing");
        of_second.try_recv().unwrap_err();

        // The end of a cancelled request leaves those that began after it.
        let (late, _of_late) = requests.register("a");
        drop((first, late));
        let (_next, mut of_next) = requests.register("a");
        requests.cancel("a");
        assert_eq!(of_next.try_recv(), Ok(()));
    }
}
