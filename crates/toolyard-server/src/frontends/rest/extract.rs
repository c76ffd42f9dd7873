//! Extractors of what handlers share. They reject with problem details.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::{ProblemDetails, RestState};
use crate::audit::{AuditAction, AuditActor, AuditEvent, AuditQueue, AuditedToolChange, actor_of};
use crate::fleet::DefinitionChange;
use crate::keys::AuthenticatedCaller;

/// The parameters of a path.
pub(super) struct UrlPath<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for UrlPath<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemDetails> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(params)| Self(params))
            .map_err(|_| ProblemDetails::bad_request("the path is not valid UTF-8"))
    }
}

/// The caller. The layer of the route's group has checked its rights.
impl<S: Send + Sync> FromRequestParts<S> for AuthenticatedCaller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ProblemDetails> {
        Self::authorize(&parts.extensions, |_| true)
    }
}

/// Records actions of the caller in the audit trail.
pub(super) struct AuditRecorder {
    queue: Arc<AuditQueue>,
    actor: AuditActor,
}

impl FromRequestParts<Arc<RestState>> for AuditRecorder {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, rest: &Arc<RestState>) -> Result<Self, Infallible> {
        Ok(Self { queue: rest.audit.clone(), actor: actor_of(parts) })
    }
}

impl AuditRecorder {
    /// Records an action on the named object.
    pub(super) fn record(self, action: AuditAction, object: &str) {
        self.queue.record_event(AuditEvent { actor: self.actor, action, object: object.to_owned() });
    }

    /// Records that a changed tool of a handler was accepted.
    pub(super) fn record_acceptance(&self, handler: &str, change: &DefinitionChange) {
        let (actor, action) = (self.actor.clone(), AuditAction::ToolAccepted);
        self.queue.record_change(AuditedToolChange::new(actor, action, handler, change));
    }
}
