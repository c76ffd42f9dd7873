//! Telling clients that something is not what it was.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, SelectAll, Stream, StreamExt};
use tokio::sync::watch;
use toolyard_core::{Call, Caller, Client, Json, Object, Task, TaskAction};

use super::changes::{Change, Changes};
use super::methods::LONGEST_URI;
use super::peer::{MOST_FOLLOWED, Peer, Uris};
use super::remote_tasks::RemoteTasks;
use super::ticket::Place;
use super::{Frontend, Sender, TaskOffer, foreign_task, tasks};
use crate::wire::{Id, RpcError, message, meta, method};

/// Messages, each in its pieces.
pub(super) type Messages = BoxStream<'static, Vec<Bytes>>;

impl Frontend {
    /// What a legacy client is told, as long as it listens. One that has missed some is told of all that can
    /// have changed.
    pub(super) fn news(&self, peer: &Peer, caller: Caller, missed: bool) -> Messages {
        let mut changes = self.changes(peer.followed(), caller);
        if missed {
            changes.suspect_all();
        }
        let next = async |mut changes: Changes| {
            let change = changes.next().await?;
            Some((vec![notification(&change, None)], changes))
        };
        let told = stream::unfold(peer.listen(self.limits.queued_notices), async |mut told| {
            let message = told.recv().await?;
            Some((vec![message], told))
        });
        // It ends with the changes, which end with the gateway.
        let told = told.map(Some).chain(stream::pending());
        let changes = stream::unfold(changes, next).map(Some).chain(stream::iter([None]));
        stream::select(told, changes).take_while(|message| ready(message.is_some())).filter_map(ready).boxed()
    }

    /// What a modern client is told that has sent `subscriptions/listen`: what it will be told of, then that, then the
    /// end. Tasks that are `elsewhere` are among that.
    ///
    /// # Errors
    /// When the client wants to follow tasks and does not take any.
    pub(super) fn listen(
        self: &Arc<Self>,
        id: Id,
        params: &Object,
        sender: &Sender,
        elsewhere: Vec<RemoteTasks>,
    ) -> Result<Messages, RpcError> {
        let filter = params.get("notifications").and_then(|filter| filter.to_object().ok());
        let filter = filter.unwrap_or_default();
        let (mut subscription, mut tasks) = self.subscribed(id, &filter, sender)?;
        for RemoteTasks { ids, changes } in elsewhere {
            subscription.tasks.extend(ids);
            tasks.push(changes);
        }
        let (frontend, caller) = (self.clone(), sender.caller.clone());
        let opened = async move {
            // Whose a resource is, is known once the handlers have had their time to answer.
            let registry = frontend.gateway.settled_for(&caller).await;
            subscription.uris.retain(|uri| registry.resource(uri).is_some());
            let first = vec![subscription.acknowledgement()];
            let (_, followed) = watch::channel(subscription.uris.clone());
            let listening = Listening { changes: frontend.changes(followed, caller), tasks, subscription };
            stream::iter([first]).chain(listening.messages())
        };
        Ok(stream::once(opened).flatten().boxed())
    }

    /// Reads the filter. What is not offered here is left out of what is granted.
    fn subscribed(
        &self,
        id: Id,
        filter: &Object,
        sender: &Sender,
    ) -> Result<(Subscription, SelectAll<BoxStream<'static, Object>>), RpcError> {
        let wants = |name: &str| filter.get(name).and_then(Json::to_bool) == Some(true);
        let mut subscription = Subscription {
            id,
            tools: self.offers.tools && wants("toolsListChanged"),
            prompts: self.offers.prompts && wants("promptsListChanged"),
            resources: self.offers.resources && wants("resourcesListChanged"),
            uris: Uris::new(),
            tasks: BTreeSet::new(),
        };
        if self.offers.resources {
            subscription.uris = texts(filter, "resourceSubscriptions").collect();
        }
        let mut followed = SelectAll::new();
        if self.offers.tasks != TaskOffer::Never && filter.get("taskIds").is_some() {
            if !tasks::has_opted_in(sender.client.capabilities()) {
                return Err(tasks::not_opted_in());
            }
            let ids: BTreeSet<_> = texts(filter, "taskIds").collect();
            for id in ids {
                if let Some(task) = self.follow_task(&id, sender) {
                    followed.push(task);
                    subscription.tasks.insert(id);
                }
            }
        }
        Ok((subscription, followed))
    }
}

impl Frontend {
    /// The changes of a task; `None` where the client has no such task here.
    fn follow_task(&self, id: &str, sender: &Sender) -> Option<BoxStream<'static, Object>> {
        match self.tasks.place(id, &sender.caller).ok()? {
            Place::Here => self.tasks.follow(id, &sender.caller),
            Place::Server { handler, tool, task } => {
                let call = Call {
                    caller: sender.caller.clone(),
                    origin: sender.origin.clone(),
                    client: sender.client.clone(),
                    ..Call::tool(tool.clone(), Object::new().to_json())
                };
                let task = Task { tool, handler, id: task, action: TaskAction::Get };
                Some(foreign_task::followed(self.gateway.clone(), &call, task, id))
            }
            Place::Gateway(_) => None,
        }
    }
}

/// The strings of a list.
pub(super) fn texts(filter: &Object, name: &str) -> impl Iterator<Item = Arc<str>> {
    let items = filter.get(name).and_then(|list| list.to_items().ok()).unwrap_or_default();
    let texts = items.into_iter().take(MOST_FOLLOWED).filter_map(|item| item.to_str().map(Arc::<str>::from));
    texts.filter(|text| text.len() <= LONGEST_URI)
}

/// A modern client that listens.
struct Listening {
    changes: Changes,
    tasks: SelectAll<BoxStream<'static, Object>>,
    subscription: Subscription,
}

impl Listening {
    /// All messages, the last one included.
    fn messages(self) -> impl Stream<Item = Vec<Bytes>> {
        stream::unfold(Some(self), async |listening| {
            let mut listening = listening?;
            match listening.next().await {
                Some(message) => Some((vec![message], Some(listening))),
                None => Some((listening.subscription.end(), None)),
            }
        })
    }

    /// The next message; `None` once the gateway stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                change = self.changes.next() => {
                    let change = change?;
                    if self.subscription.wants(&change) {
                        return Some(notification(&change, Some(&self.subscription)));
                    }
                }
                Some(task) = self.tasks.next(), if !self.tasks.is_empty() => {
                    let params = task.with("_meta", self.subscription.meta());
                    return Some(message::notification(method::TASK_CHANGED, &params));
                }
            }
        }
    }
}

/// What a client asked to be told of in `subscriptions/listen`, as far as that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subscription {
    id: Id,
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Uris,
    tasks: BTreeSet<Arc<str>>,
}

impl Subscription {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(_) => true,
        }
    }

    /// The first message: what the client will be told of.
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
        let params = self.mark(Object::new()).with("notifications", granted.to_json());
        message::notification(method::ACKNOWLEDGED, &params)
    }

    /// The last message, when the gateway ends the stream.
    fn end(&self) -> Vec<Bytes> {
        let result = Object::new().with("resultType", Json::string("complete")).with("_meta", self.meta());
        message::response(Some(&self.id), Ok(vec![result.to_json().bytes()]))
    }

    /// Puts the subscription beside what else `_meta` says.
    fn mark(&self, params: Object) -> Object {
        let meta = params.get("_meta").and_then(|meta| meta.to_object().ok()).unwrap_or_default();
        params.with("_meta", meta.with(meta::SUBSCRIPTION_ID, self.id.to_json()).to_json())
    }

    fn meta(&self) -> Json {
        Object::new().with(meta::SUBSCRIPTION_ID, self.id.to_json()).to_json()
    }
}

/// The notification of a change, for this subscription of a modern client.
fn notification(change: &Change, subscription: Option<&Subscription>) -> Bytes {
    let (method, said) = match change {
        Change::Tools => (method::TOOLS_CHANGED, Object::new()),
        Change::Prompts => (method::PROMPTS_CHANGED, Object::new()),
        Change::Resources => (method::RESOURCES_CHANGED, Object::new()),
        Change::Updated(said) => (method::RESOURCE_UPDATED, said.clone()),
    };
    message::notification(
        method,
        &match subscription {
            Some(subscription) => subscription.mark(said),
            None => said,
        },
    )
}
