//! Change notifications to clients.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, SelectAll, Stream, StreamExt};
use tokio::sync::watch;
use toolyard_core::{Call, Caller, Client, Json, Object, TaskAction, TaskReference};

use super::changes::{ChangeEvent, ChangeFeed};
use crate::server::interaction::ticket::TicketLocation;
use crate::server::methods::MAX_URI_BYTES;
use crate::server::session::legacy_client::{LegacyClient, MAX_FOLLOWED, UriSet};
use crate::server::tasks::remote_tasks::RemoteTasks;
use crate::server::tasks::upstream_task;
use crate::server::{McpFrontend, RequestContext, TaskOffer, tasks};
use crate::wire::{RequestId, RpcError, message, meta, method};

/// Messages, each in pieces.
pub(in crate::server) type MessageStream = BoxStream<'static, Vec<Bytes>>;

impl McpFrontend {
    /// Returns the notifications for a legacy client that belong to no request. If it `missed` some, everything is
    /// reported as changed.
    pub(in crate::server) fn legacy_notifications(
        &self,
        peer: &LegacyClient,
        caller: Caller,
        missed: bool,
    ) -> MessageStream {
        let caller = Caller { lends_model: peer.lends_model(), ..caller };
        let mut changes = self.change_feed(peer.followed(), caller);
        if missed {
            changes.report_all();
        }
        let next = async |mut changes: ChangeFeed| {
            let change = changes.next().await?;
            Some((vec![notification(&change, None)], changes))
        };
        let notifications = stream::unfold(
            peer.open_notification_stream(self.limits.max_queued_notices),
            async |mut receiver| {
                let message = receiver.recv().await?;
                Some((vec![message], receiver))
            },
        );
        // It ends with the changes, which end with the gateway.
        let notifications = notifications.map(Some).chain(stream::pending());
        let changes = stream::unfold(changes, next).map(Some).chain(stream::iter([None]));
        stream::select(notifications, changes)
            .take_while(|message| ready(message.is_some()))
            .filter_map(ready)
            .boxed()
    }

    /// Returns the messages of `subscriptions/listen`: the acknowledgement, the notifications, and the final response.
    /// Tasks at other gateways are in `elsewhere`.
    ///
    /// # Errors
    /// When the client subscribes to tasks without declaring the extension.
    pub(in crate::server) fn listen(
        self: &Arc<Self>,
        id: RequestId,
        params: &Object,
        context: &RequestContext,
        elsewhere: Vec<RemoteTasks>,
    ) -> Result<MessageStream, RpcError> {
        let filter = params.get("notifications").and_then(|filter| filter.to_object().ok());
        let filter = filter.unwrap_or_default();
        let (mut subscription, mut tasks) = self.read_filter(id, &filter, context)?;
        for RemoteTasks { ids, changes } in elsewhere {
            subscription.tasks.extend(ids);
            tasks.push(changes);
        }
        let lends_model = self.lends_model(context);
        let (frontend, caller) = (self.clone(), Caller { lends_model, ..context.caller.clone() });
        let opened = async move {
            // The owner of a resource is known only once the handlers have connected.
            let registry = frontend.gateway.settled_for(&caller).await;
            subscription.uris.retain(|uri| registry.resource(uri).is_some());
            let first = vec![subscription.acknowledgement()];
            let (_, followed) = watch::channel(subscription.uris.clone());
            let stream =
                SubscriptionStream { changes: frontend.change_feed(followed, caller), tasks, subscription };
            stream::iter([first]).chain(stream.messages())
        };
        Ok(stream::once(opened).flatten().boxed())
    }

    /// Reads the filter. Features that are not offered are not granted.
    fn read_filter(
        &self,
        id: RequestId,
        filter: &Object,
        context: &RequestContext,
    ) -> Result<(ChangeSubscription, SelectAll<BoxStream<'static, Object>>), RpcError> {
        let is_requested = |name: &str| filter.get(name).and_then(Json::to_bool) == Some(true);
        let mut subscription = ChangeSubscription {
            id,
            tools: self.offers.tools && is_requested("toolsListChanged"),
            prompts: self.offers.prompts && is_requested("promptsListChanged"),
            resources: self.offers.resources && is_requested("resourcesListChanged"),
            uris: UriSet::new(),
            tasks: BTreeSet::new(),
        };
        if self.offers.resources {
            subscription.uris = string_list(filter, "resourceSubscriptions").collect();
        }
        let mut followed = SelectAll::new();
        if self.offers.tasks != TaskOffer::Never && filter.get("taskIds").is_some() {
            if !tasks::has_opted_in(context.client.capabilities()) {
                return Err(tasks::not_opted_in());
            }
            let ids: BTreeSet<_> = string_list(filter, "taskIds").collect();
            for id in ids {
                if let Some(task) = self.follow_task(&id, context) {
                    followed.push(task);
                    subscription.tasks.insert(id);
                }
            }
        }
        Ok((subscription, followed))
    }
}

impl McpFrontend {
    /// Returns the changes of a task; `None` if the caller has no such task at this gateway.
    fn follow_task(&self, id: &str, context: &RequestContext) -> Option<BoxStream<'static, Object>> {
        match self.tasks.locate(id, &context.caller).ok()? {
            TicketLocation::Here => self.tasks.follow(id, &context.caller),
            TicketLocation::Server { handler, tool, task } => {
                let call = Call {
                    caller: Caller { lends_model: true, ..context.caller.clone() },
                    origin: context.origin.clone(),
                    client: context.client.clone(),
                    ..Call::tool(tool.clone(), Object::new().to_json())
                };
                let task = TaskReference { tool, handler, id: task, action: TaskAction::Get };
                Some(upstream_task::task_changes(self.gateway.clone(), &call, task, id))
            }
            TicketLocation::Gateway(_) => None,
        }
    }
}

/// Returns the strings of a list, within the limits.
pub(in crate::server) fn string_list(filter: &Object, name: &str) -> impl Iterator<Item = Arc<str>> {
    let items = filter.get(name).and_then(|list| list.to_items().ok()).unwrap_or_default();
    let texts = items.into_iter().take(MAX_FOLLOWED).filter_map(|item| item.to_str().map(Arc::<str>::from));
    texts.filter(|text| text.len() <= MAX_URI_BYTES)
}

/// The open subscription of a modern client.
struct SubscriptionStream {
    changes: ChangeFeed,
    tasks: SelectAll<BoxStream<'static, Object>>,
    subscription: ChangeSubscription,
}

impl SubscriptionStream {
    /// Returns all messages, including the final response.
    fn messages(self) -> impl Stream<Item = Vec<Bytes>> {
        stream::unfold(Some(self), async |listening| {
            let mut listening = listening?;
            match listening.next().await {
                Some(message) => Some((vec![message], Some(listening))),
                None => Some((listening.subscription.final_response(), None)),
            }
        })
    }

    /// Returns the next notification; `None` once the gateway stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                change = self.changes.next() => {
                    let change = change?;
                    if self.subscription.includes(&change) {
                        return Some(notification(&change, Some(&self.subscription)));
                    }
                }
                Some(task) = self.tasks.next(), if !self.tasks.is_empty() => {
                    let params = task.with("_meta", self.subscription.subscription_meta());
                    return Some(message::notification(method::TASK_CHANGED, &params));
                }
            }
        }
    }
}

/// The granted part of a `subscriptions/listen` request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangeSubscription {
    id: RequestId,
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: UriSet,
    tasks: BTreeSet<Arc<str>>,
}

impl ChangeSubscription {
    fn includes(&self, change: &ChangeEvent) -> bool {
        match change {
            ChangeEvent::Tools => self.tools,
            ChangeEvent::Prompts => self.prompts,
            ChangeEvent::Resources => self.resources,
            ChangeEvent::Updated(_) => true,
        }
    }

    /// Returns the first message, which names what is granted.
    fn acknowledgement(&self) -> Bytes {
        let mut granted = Object::new();
        let lists = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (name, _) in lists.iter().filter(|(_, granted)| *granted) {
            granted.set(name, Json::boolean(true));
        }
        if !self.uris.is_empty() {
            let uris: Vec<_> = self.uris.iter().map(|uri| Json::string(uri)).collect();
            granted.set("resourceSubscriptions", Json::array(&uris));
        }
        if !self.tasks.is_empty() {
            let ids: Vec<_> = self.tasks.iter().map(|id| Json::string(id)).collect();
            granted.set("taskIds", Json::array(&ids));
        }
        let params = self.with_subscription_id(Object::new()).with("notifications", granted.to_json());
        message::notification(method::ACKNOWLEDGED, &params)
    }

    /// Returns the final response, sent when the gateway ends the stream.
    fn final_response(&self) -> Vec<Bytes> {
        let result = Object::new()
            .with("resultType", Json::string("complete"))
            .with("_meta", self.subscription_meta());
        message::response(Some(&self.id), Ok(vec![result.to_json().bytes()]))
    }

    /// Adds the subscription id to `_meta`.
    fn with_subscription_id(&self, params: Object) -> Object {
        let meta = params.get("_meta").and_then(|meta| meta.to_object().ok()).unwrap_or_default();
        params.with("_meta", meta.with(meta::SUBSCRIPTION_ID, self.id.to_json()).to_json())
    }

    fn subscription_meta(&self) -> Json {
        Object::new().with(meta::SUBSCRIPTION_ID, self.id.to_json()).to_json()
    }
}

/// Returns the notification of a change, with the id of the subscription for a modern client.
fn notification(change: &ChangeEvent, subscription: Option<&ChangeSubscription>) -> Bytes {
    let (method, params) = match change {
        ChangeEvent::Tools => (method::TOOLS_CHANGED, Object::new()),
        ChangeEvent::Prompts => (method::PROMPTS_CHANGED, Object::new()),
        ChangeEvent::Resources => (method::RESOURCES_CHANGED, Object::new()),
        ChangeEvent::Updated(params) => (method::RESOURCE_UPDATED, params.clone()),
    };
    message::notification(
        method,
        &match subscription {
            Some(subscription) => subscription.with_subscription_id(params),
            None => params,
        },
    )
}
