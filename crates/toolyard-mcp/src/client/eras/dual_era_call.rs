//! Calls of clients that can be asked, at a modern server that may speak the legacy era as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{
    Call, CallTarget, Client, ClientNotification, ClientWrapper, ErrorCode, InputRequest, InputRequestError,
    Json, Outcome, Tool, ToolError,
};

use super::{TargetEra, evidence};
use crate::client::connection::UpstreamConnection;
use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::pool::dedicated_connection::{ConnectionOwner, DedicatedKey};
use crate::client::retry::AttemptError;
use crate::client::{LeasedConnection, McpBackend, SharingMode, lease_in_time};
use crate::wire::ProtocolEra;

impl McpBackend {
    /// Returns the key of the legacy connection for a call that may need it; `None` if the call is one for the shared
    /// connection in any case.
    pub(in crate::client) fn legacy_key(
        &self,
        call: &Call,
        shared: &UpstreamConnection,
    ) -> Option<DedicatedKey> {
        let may_differ = self.sharing != SharingMode::Shared
            && shared.revision().era() == ProtocolEra::Modern
            && self.connector.options.era.only().is_none()
            && call.client.can_be_asked()
            && !matches!(call.target, CallTarget::Task(_) | CallTarget::Function(_))
            && self.connector.eras.may_speak_legacy();
        if !may_differ {
            return None;
        }
        let owner = ConnectionOwner::of(&call.caller);
        let has_session = matches!(owner, Some(ConnectionOwner::Session(_)));
        let declared = DeclaredCapabilities::of(&*call.client, has_session);
        let key = DedicatedKey { owner, declared, era: Some(ProtocolEra::Legacy) };
        (!key.declared.is_empty()).then_some(key)
    }

    /// Makes an attempt in the era that suits the call, and another one in the other era if the call failed because of
    /// its era and may be repeated.
    pub(in crate::client) async fn attempt_in_eras(
        &self,
        call: Arc<Call>,
        shared: Arc<UpstreamConnection>,
        legacy: DedicatedKey,
    ) -> Result<Outcome, AttemptError> {
        let observed = Arc::new(ObservedClient::new(call.client.clone()));
        let call = Arc::new(Call { client: observed.clone(), ..(*call).clone() });
        let own = match self.connector.eras.is_modern(&call.target) {
            true => None,
            false => self.lease_own(&call).await?,
        };
        let leased = match self.first_era(&call, &legacy) {
            ProtocolEra::Legacy if own.is_none() => self.lease_legacy(&legacy, call.deadline).await?,
            ProtocolEra::Legacy | ProtocolEra::Modern => own,
        };
        let era = leased.as_ref().map(|leased| leased.connection.revision().era());
        let result = match leased {
            Some(leased) => self.attempt_on(leased, call.clone()).await,
            None => self.attempt_by_default(call.clone(), shared.clone()).await,
        };
        match era {
            Some(ProtocolEra::Legacy) => self.after_legacy(call, shared, &legacy, &observed, result).await,
            Some(ProtocolEra::Modern) | None => self.after_modern(call, &legacy, &observed, result).await,
        }
    }

    /// Leases the legacy connection of a call, and waits while it is opened; `None` if the server does not speak that
    /// era.
    ///
    /// # Errors
    /// [`ErrorCode::Unavailable`] if it cannot be opened, or not before the deadline. Nothing was sent for the call.
    async fn lease_legacy(
        &self,
        key: &DedicatedKey,
        deadline: Option<Instant>,
    ) -> Result<Option<LeasedConnection>, ToolError> {
        loop {
            let Some(mut lease) = lease_in_time(deadline, self.dedicated.lease(key)).await? else {
                return Ok(None);
            };
            let opened = match deadline {
                Some(deadline) => timeout_at(deadline, lease.connection()).await,
                None => Ok(lease.connection().await),
            };
            match opened {
                Ok(Ok(Some(connection))) => return Ok(Some(LeasedConnection { lease, connection })),
                Ok(Ok(None)) => {}
                Ok(Err(_)) if !self.connector.eras.may_speak_legacy() => return Ok(None),
                Ok(Err(error)) => return Err(no_connection(error.reason()).caused_by(error)),
                Err(_) => {
                    // It goes on opening, for the next call.
                    lease.is_answered = true;
                    return Err(no_connection("it was not open before the deadline of the call"));
                }
            }
        }
    }

    /// Returns the era for the first attempt of a call.
    fn first_era(&self, call: &Call, legacy: &DedicatedKey) -> ProtocolEra {
        // A call that continues one of the modern era.
        if ["inputResponses", "requestState"].iter().any(|member| call.params.get(member).is_some()) {
            return ProtocolEra::Modern;
        }
        match self.connector.eras.target(&call.target) {
            Some(TargetEra::Modern | TargetEra::ModernTrial) => ProtocolEra::Modern,
            Some(TargetEra::Legacy | TargetEra::LegacyTrial) => ProtocolEra::Legacy,
            None if legacy.has_session() => ProtocolEra::Legacy,
            None => ProtocolEra::Modern,
        }
    }

    /// Draws the conclusions from a modern attempt.
    async fn after_modern(
        &self,
        call: Arc<Call>,
        legacy: &DedicatedKey,
        observed: &ObservedClient,
        result: Result<Outcome, AttemptError>,
    ) -> Result<Outcome, AttemptError> {
        let eras = &self.connector.eras;
        let target_era = eras.target(&call.target);
        if evidence::needs_modern_era(&result) {
            eras.record(&call.target, TargetEra::Modern);
            return result;
        }
        if target_era == Some(TargetEra::ModernTrial) {
            eras.record(&call.target, TargetEra::Legacy);
        }
        let may_be_of_era = evidence::may_be_of_era(&result, ProtocolEra::Modern, &legacy.declared);
        if target_era == Some(TargetEra::Modern) || !may_be_of_era {
            return result;
        }
        // Opens the connection that this call or the next one needs: without that era, the error is final.
        let mut leased = match self.lease_legacy(legacy, call.deadline).await {
            Ok(Some(leased)) => leased,
            Err(_) if eras.speaks_legacy() => {
                eras.record(&call.target, TargetEra::LegacyTrial);
                return evidence::with_hint(result, ProtocolEra::Modern);
            }
            Ok(None) | Err(_) => return result,
        };
        eras.record(&call.target, TargetEra::LegacyTrial);
        if !evidence::is_refused_for_capability(&result) && !self.may_repeat(&call.target, observed) {
            leased.lease.is_answered = true;
            return evidence::with_hint(result, ProtocolEra::Modern);
        }
        let target = call.target.clone();
        let result = self.attempt_on(leased, call).await;
        self.record_questions(&target, observed);
        result
    }

    /// Draws the conclusions from a legacy attempt.
    async fn after_legacy(
        &self,
        call: Arc<Call>,
        shared: Arc<UpstreamConnection>,
        legacy: &DedicatedKey,
        observed: &ObservedClient,
        result: Result<Outcome, AttemptError>,
    ) -> Result<Outcome, AttemptError> {
        let eras = &self.connector.eras;
        self.record_questions(&call.target, observed);
        let is_open = eras.target(&call.target).is_none();
        let may_be_of_era = evidence::may_be_of_era(&result, ProtocolEra::Legacy, &legacy.declared);
        if !is_open || observed.was_asked() || !may_be_of_era {
            return result;
        }
        let target = call.target.clone();
        if !evidence::is_refused_for_capability(&result) && !self.may_repeat(&target, observed) {
            eras.record(&target, TargetEra::ModernTrial);
            return evidence::with_hint(result, ProtocolEra::Legacy);
        }
        let modern = self.attempt_by_default(call, shared).await;
        let is_modern = evidence::needs_modern_era(&modern);
        eras.record(&target, if is_modern { TargetEra::Modern } else { TargetEra::Legacy });
        if is_modern { modern } else { result }
    }

    /// Records that a target asks in the legacy era.
    fn record_questions(&self, target: &CallTarget, observed: &ObservedClient) {
        if observed.was_asked() {
            self.connector.eras.record(target, TargetEra::Legacy);
        }
    }

    /// True if a failed call may be made again.
    fn may_repeat(&self, target: &CallTarget, observed: &ObservedClient) -> bool {
        let is_repeatable = match target {
            CallTarget::Tool(name) => {
                let catalog = self.catalog.current();
                catalog.tools.iter().any(|tool| tool.name == *name && has_no_further_effect(tool))
            }
            // Reading changes nothing.
            CallTarget::Prompt(_) | CallTarget::Resource(_) | CallTarget::Completion(_) => true,
            CallTarget::Task(_) | CallTarget::Function(_) => false,
        };
        is_repeatable && !observed.had_progress()
    }
}

/// Returns the error of a call that needs a dedicated connection.
fn no_connection(reason: &str) -> ToolError {
    let message = format!("No dedicated connection to the server: {reason}");
    ToolError::new(ErrorCode::Unavailable, message)
        .unsent()
        .because(format!("no dedicated connection: {reason}"))
}

/// True if a tool is read-only or idempotent, by its annotations.
fn has_no_further_effect(tool: &Tool) -> bool {
    let annotations = tool.definition.get("annotations").and_then(|annotations| annotations.to_object().ok());
    let is_set = |name: &&str| annotations.as_ref()?.get(name)?.to_bool();
    ["readOnlyHint", "idempotentHint"].iter().any(|name| is_set(name) == Some(true))
}

/// A client that records whether it was asked.
#[derive(Debug)]
struct ObservedClient {
    client: Arc<dyn Client>,
    was_asked: AtomicBool,
    had_progress: AtomicBool,
}

impl ObservedClient {
    fn new(client: Arc<dyn Client>) -> Self {
        Self { client, was_asked: AtomicBool::new(false), had_progress: AtomicBool::new(false) }
    }

    fn was_asked(&self) -> bool {
        self.was_asked.load(Ordering::Relaxed)
    }

    fn had_progress(&self) -> bool {
        self.had_progress.load(Ordering::Relaxed)
    }
}

impl ClientWrapper for ObservedClient {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn notify(&self, notice: ClientNotification) {
        // Progress must increase, so that it cannot start anew.
        if matches!(notice, ClientNotification::Progress(_)) {
            self.had_progress.store(true, Ordering::Relaxed);
        }
        self.client.notify(notice);
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        self.was_asked.store(true, Ordering::Relaxed);
        self.client.ask(ask)
    }
}
