//! Which method does what.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use toolyard_core::registry::Kind;
use toolyard_core::{Caller, LogLevel, Object, TaskAction};

use super::pages::{Page, page};
use super::peer::Peer;
use super::progress::alive;
use super::{Answer, Frontend, Request, Sender, TaskOffer};
use crate::wire::{Era, Id, RpcError, meta, method};

/// The longest URI that can be followed, in bytes: what is followed is remembered.
pub(super) const LONGEST_URI: usize = 8192;

impl Frontend {
    /// Answers a request of any method but those that open a session or a stream.
    pub(super) async fn answer(self: Arc<Self>, request: Request, sender: Sender) -> Answer {
        let (progress, every) = (sender.client.progress(), self.limits.heartbeat);
        let answer = pin!(self.dispatch(request, sender));
        alive(progress, every, answer).await
    }

    async fn dispatch(self: Arc<Self>, request: Request, sender: Sender) -> Answer {
        let (offers, era) = (self.offers, sender.era);
        let has_tasks = offers.tasks != TaskOffer::Never;
        if !offers.logging {
            sender.client.mute();
        } else if era == Era::Modern {
            check_level(&request.meta)?;
        }
        match (&*request.method, era) {
            (method::TOOLS_CALL, _) if offers.tools => self.call(request, sender).await,
            (method::TOOLS_LIST, _) if offers.tools => self.list(Kind::Tools, &request.params, &sender).await,
            (method::PROMPTS_GET, _) if offers.prompts => self.call(request, sender).await,
            (method::PROMPTS_LIST, _) if offers.prompts => {
                self.list(Kind::Prompts, &request.params, &sender).await
            }
            (method::RESOURCES_READ, _) if offers.resources => self.call(request, sender).await,
            (method::RESOURCES_LIST, _) if offers.resources => {
                self.list(Kind::Resources, &request.params, &sender).await
            }
            (method::TEMPLATES_LIST, _) if offers.resources => {
                self.list(Kind::Templates, &request.params, &sender).await
            }
            (method::SUBSCRIBE, Era::Legacy) if offers.resources => {
                self.subscribe(&request.params, &sender).await
            }
            (method::UNSUBSCRIBE, Era::Legacy) if offers.resources => unsubscribe(&request.params, &sender),
            (method::COMPLETE, _) if offers.completions => self.call(request, sender).await,
            (method::SET_LEVEL, Era::Legacy) if offers.logging => set_level(&request.params, &sender),
            (method::TASKS_GET, Era::Modern) if has_tasks => {
                self.task(TaskAction::Get, request, sender).await
            }
            (method::TASKS_UPDATE, Era::Modern) if has_tasks => {
                self.task(TaskAction::Update, request, sender).await
            }
            (method::TASKS_CANCEL, Era::Modern) if has_tasks => {
                self.task(TaskAction::Cancel, request, sender).await
            }
            (method::DISCOVER, Era::Modern) => Ok(self.described.discover()),
            (method::PING, Era::Legacy) => Ok(nothing()),
            (method, _) => Err(RpcError::method_not_found(method)),
        }
    }

    /// Takes what a legacy client says that wants no answer.
    pub(super) fn noticed(&self, peer: &Peer, caller: &Caller, method: &str, params: &Object) {
        match method {
            method::CANCELLED => {
                if let Some(id) = params.get("requestId").and_then(Id::parse) {
                    peer.running.cancel(&id);
                }
            }
            method::ROOTS_CHANGED => self.gateway.roots_changed(caller),
            _ => {}
        }
    }

    /// A page of what there is of one kind.
    async fn list(&self, kind: Kind, params: &Object, sender: &Sender) -> Answer {
        let registry = self.gateway.settled_for(&sender.caller).await;
        let Page { list, next } = page(&registry, kind, self.limits.list_page, params.get("cursor"))?;
        let next = next.map(|cursor| format!(r#","nextCursor":"{cursor}""#));
        let rest = match sender.era {
            Era::Legacy => Bytes::from_static(b"}"),
            // What one caller sees is not what another one may keep.
            Era::Modern => self.described.list_rest(registry.hint(kind), sender.caller.grant.is_some()),
        };
        let mut pieces = vec![Bytes::from_static(opening(kind)), list];
        pieces.extend(next.map(Bytes::from));
        pieces.push(rest);
        Ok(pieces)
    }

    /// A legacy client wants to be told of changes of a resource.
    async fn subscribe(&self, params: &Object, sender: &Sender) -> Answer {
        let uri = uri(params)?;
        if self.gateway.settled_for(&sender.caller).await.resource(&uri).is_none() {
            return Err(super::convert::resource_not_found(&uri, sender.era));
        }
        let peer = sender.peer.as_ref().ok_or_else(no_session)?;
        match peer.subscribe(&uri) {
            true => Ok(nothing()),
            false => Err(RpcError::invalid_params("too many resources are subscribed to")),
        }
    }
}

/// A modern request wants log of a level that there is (2026-07-28, server/utilities/logging, error handling).
fn check_level(meta: &Object) -> Result<(), RpcError> {
    match meta.get(meta::LOG_LEVEL) {
        Some(level) if level.to_str().and_then(|level| LogLevel::parse(&level)).is_none() => {
            let problem = format!("`params._meta[\"{}\"]` is not a level of log", meta::LOG_LEVEL);
            Err(RpcError::invalid_params(problem))
        }
        _ => Ok(()),
    }
}

fn unsubscribe(params: &Object, sender: &Sender) -> Answer {
    let uri = uri(params)?;
    sender.peer.as_ref().ok_or_else(no_session)?.unsubscribe(&uri);
    Ok(nothing())
}

fn set_level(params: &Object, sender: &Sender) -> Answer {
    let level = params.get_str("level").and_then(|level| LogLevel::parse(&level));
    let level = level.ok_or_else(|| RpcError::invalid_params("`params.level` is not a level of log"))?;
    sender.peer.as_ref().ok_or_else(no_session)?.set_log_level(level);
    Ok(nothing())
}

fn uri(params: &Object) -> Result<String, RpcError> {
    let uri = params.get_str("uri").map(std::borrow::Cow::into_owned);
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`params.uri` is not a string"))?;
    match uri.len() <= LONGEST_URI {
        true => Ok(uri),
        false => Err(RpcError::invalid_params("`params.uri` is longer than 8192 bytes")),
    }
}

fn no_session() -> RpcError {
    RpcError::invalid_params("this needs a session")
}

/// The result that says nothing but that it is done, in the legacy era.
fn nothing() -> Vec<Bytes> {
    vec![Bytes::from_static(b"{}")]
}

const fn opening(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Tools => b"{\"tools\":",
        Kind::Prompts => b"{\"prompts\":",
        Kind::Resources => b"{\"resources\":",
        Kind::Templates => b"{\"resourceTemplates\":",
    }
}
