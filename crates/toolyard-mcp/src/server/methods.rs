//! Dispatch of requests and notifications by method.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Caller, LogLevel, Object, TaskAction};

use super::notify::progress::with_heartbeat;
use super::pages::{ListPage, read_page};
use super::session::legacy_client::LegacyClient;
use super::{McpAnswer, McpFrontend, McpRequest, RequestContext, TaskOffer};
use crate::wire::{ProtocolEra, RequestId, RpcError, meta, method};

/// Maximum length of a followed URI in bytes.
pub(super) const MAX_URI_BYTES: usize = 8192;

impl McpFrontend {
    /// Answers a request of any method but those that open a session or a stream.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: McpRequest,
        mut context: RequestContext,
    ) -> McpAnswer {
        context.caller.lends_model = self.lends_model(&context);
        let (progress, every) = (context.client.progress(), self.limits.heartbeat);
        let answer = pin!(self.dispatch(request, context));
        with_heartbeat(progress, every, answer).await
    }

    async fn dispatch(self: Arc<Self>, request: McpRequest, context: RequestContext) -> McpAnswer {
        let (offers, era) = (self.offers, context.era);
        let has_tasks = offers.tasks != TaskOffer::Never;
        if !offers.logging {
            context.client.mute_log();
        } else if era == ProtocolEra::Modern {
            check_log_level(&request.meta)?;
        }
        match (&*request.method, era) {
            (method::TOOLS_CALL, _) if offers.tools => self.handle_call(request, context).await,
            (method::TOOLS_LIST, _) if offers.tools => {
                self.list_page(EntryKind::Tools, &request.params, &context).await
            }
            (method::PROMPTS_GET, _) if offers.prompts => self.handle_call(request, context).await,
            (method::PROMPTS_LIST, _) if offers.prompts => {
                self.list_page(EntryKind::Prompts, &request.params, &context).await
            }
            (method::RESOURCES_READ, _) if offers.resources => self.handle_call(request, context).await,
            (method::RESOURCES_LIST, _) if offers.resources => {
                self.list_page(EntryKind::Resources, &request.params, &context).await
            }
            (method::TEMPLATES_LIST, _) if offers.resources => {
                self.list_page(EntryKind::Templates, &request.params, &context).await
            }
            (method::SUBSCRIBE, ProtocolEra::Legacy) if offers.resources => {
                self.subscribe(&request.params, &context).await
            }
            (method::UNSUBSCRIBE, ProtocolEra::Legacy) if offers.resources => {
                unsubscribe(&request.params, &context)
            }
            (method::COMPLETE, _) if offers.completions => self.handle_call(request, context).await,
            (method::SET_LEVEL, ProtocolEra::Legacy) if offers.logging => {
                set_log_level(&request.params, &context)
            }
            (method::TASKS_GET, ProtocolEra::Modern) if has_tasks => {
                self.handle_task(TaskAction::Get, request, context).await
            }
            (method::TASKS_UPDATE, ProtocolEra::Modern) if has_tasks => {
                self.handle_task(TaskAction::Update, request, context).await
            }
            (method::TASKS_CANCEL, ProtocolEra::Modern) if has_tasks => {
                self.handle_task(TaskAction::Cancel, request, context).await
            }
            (method::DISCOVER, ProtocolEra::Modern) => {
                admit(&context.caller)?;
                Ok(self.description.discover_result(&context.caller))
            }
            (method::PING, ProtocolEra::Legacy) => Ok(empty_result()),
            (method, _) => Err(RpcError::method_not_found(method)),
        }
    }

    /// Handles a notification of a legacy client.
    pub(super) fn handle_notification(
        &self,
        peer: &LegacyClient,
        caller: &Caller,
        method: &str,
        params: &Object,
    ) {
        match method {
            method::CANCELLED => {
                if let Some(id) = params.get("requestId").and_then(RequestId::parse) {
                    peer.requests.cancel(&id);
                }
            }
            method::ROOTS_CHANGED => self.gateway.roots_changed(caller),
            _ => {}
        }
    }

    /// Returns a page of a list.
    async fn list_page(&self, kind: EntryKind, params: &Object, context: &RequestContext) -> McpAnswer {
        let registry = self.gateway.settled_for(&context.caller).await;
        let ListPage { list, next } =
            read_page(&registry, (kind, context.era), self.limits.list_page_size, params.get("cursor"))?;
        let next = next.map(|cursor| format!(r#","nextCursor":"{cursor}""#));
        let rest = match context.era {
            ProtocolEra::Legacy => Bytes::from_static(b"}"),
            // A list may differ between callers, so that it must not be cached for others.
            ProtocolEra::Modern => {
                let is_own = context.caller.grant.is_some() || registry.is_of_one_client();
                self.description.list_suffix(registry.hint(kind), is_own)
            }
        };
        let mut pieces = vec![Bytes::from_static(list_prefix(kind)), list];
        pieces.extend(next.map(Bytes::from));
        pieces.push(rest);
        Ok(pieces)
    }

    /// Subscribes a legacy client to a resource.
    async fn subscribe(&self, params: &Object, context: &RequestContext) -> McpAnswer {
        let uri = uri_param(params)?;
        if self.gateway.settled_for(&context.caller).await.resource(&uri).is_none() {
            return Err(super::convert::resource_not_found(&uri, context.era));
        }
        let peer = context.peer.as_ref().ok_or_else(no_session)?;
        match peer.subscribe(&uri) {
            true => Ok(empty_result()),
            false => Err(RpcError::invalid_params("too many resource subscriptions")),
        }
    }
}

/// Counts a request that is not a call against the rate limit of its caller.
pub(super) fn admit(caller: &Caller) -> Result<(), RpcError> {
    let admitted = caller.grant.as_ref().map_or(Ok(()), |grant| grant.admit());
    admitted.map_err(|error| RpcError::from(&error))
}

/// Checks the log level of a modern request (2026-07-28, server/utilities/logging, error handling).
fn check_log_level(meta: &Object) -> Result<(), RpcError> {
    match meta.get(meta::LOG_LEVEL) {
        Some(level) if level.to_str().and_then(|level| LogLevel::parse(&level)).is_none() => {
            let problem = format!("`params._meta[\"{}\"]` is not a log level", meta::LOG_LEVEL);
            Err(RpcError::invalid_params(problem))
        }
        _ => Ok(()),
    }
}

fn unsubscribe(params: &Object, context: &RequestContext) -> McpAnswer {
    let uri = uri_param(params)?;
    context.peer.as_ref().ok_or_else(no_session)?.unsubscribe(&uri);
    Ok(empty_result())
}

fn set_log_level(params: &Object, context: &RequestContext) -> McpAnswer {
    let level = params.get_str("level").and_then(|level| LogLevel::parse(&level));
    let level = level.ok_or_else(|| RpcError::invalid_params("`params.level` is not a log level"))?;
    context.peer.as_ref().ok_or_else(no_session)?.set_log_level(level);
    Ok(empty_result())
}

fn uri_param(params: &Object) -> Result<String, RpcError> {
    let uri = params.get_str("uri").map(std::borrow::Cow::into_owned);
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`params.uri` is not a string"))?;
    match uri.len() <= MAX_URI_BYTES {
        true => Ok(uri),
        false => Err(RpcError::invalid_params("`params.uri` is longer than 8192 bytes")),
    }
}

fn no_session() -> RpcError {
    RpcError::invalid_params("this method needs a session")
}

/// Returns the empty result of the legacy era.
fn empty_result() -> Vec<Bytes> {
    vec![Bytes::from_static(b"{}")]
}

const fn list_prefix(kind: EntryKind) -> &'static [u8] {
    match kind {
        EntryKind::Tools => b"{\"tools\":",
        EntryKind::Prompts => b"{\"prompts\":",
        EntryKind::Resources => b"{\"resources\":",
        EntryKind::Templates => b"{\"resourceTemplates\":",
    }
}
