//! Errors of reconciliations, and when they are repeated.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};

use super::Context;

/// Error of a reconciliation.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The server of the cluster failed or refused a request.
    #[error("{0}")]
    Api(#[from] kube::Error),
    /// An object has the name of one that the operator would create, and belongs to something else.
    #[error(
        "{kind} `{name}` exists already and does not belong to this resource: delete it, or rename the resource"
    )]
    Foreign {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
    },
    /// Another field manager changes an object back as often as it is restored.
    #[error(
        "another field manager undoes the changes of {kind} `{name}`, which are repeated after growing delays: find it by `kubectl get {kind} {name} --show-managed-fields -o yaml`, and let it leave these fields alone"
    )]
    Contended {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// Time until the next attempt.
        delay: Duration,
    },
    /// An object cannot be written as JSON, or lacks a name.
    #[error("{0}")]
    Object(String),
}

impl ControllerError {
    /// Returns `true` if the server refused an object as invalid, so that only an edit helps.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422))
    }

    /// Returns `true` if the object or its kind does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 404)
    }

    /// Returns `true` if a status should say what is wrong until a person mends it.
    #[must_use]
    pub fn needs_a_person(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Foreign { .. } | Self::Contended { .. })
    }

    /// Returns the maximum delay until the repetition.
    fn max_delay(&self) -> Duration {
        match self {
            Self::Api(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => MAX_DELAY,
            Self::Api(_) => SERVER_DELAY,
            Self::Foreign { .. } | Self::Contended { .. } | Self::Object(_) => MAX_DELAY,
        }
    }

    /// Returns the message of the server without its details, for a condition.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Api(kube::Error::Api(status)) => status.message.clone(),
            Self::Api(_) => "the server of the cluster does not respond".to_owned(),
            error => error.to_string(),
        }
    }
}

/// First delay of a repetition.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Maximum delay of a repetition.
const MAX_DELAY: Duration = Duration::from_secs(300);

/// Maximum delay of a repetition after a failure of the server itself, which may be back at any time.
const SERVER_DELAY: Duration = Duration::from_secs(15);

/// Returns the delay after a number of failures, at least one.
pub(super) fn doubled_delay(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_DELAY)
}

/// Delays between failed reconciliations: doubled with each failure of the same resource.
#[derive(Debug, Default)]
pub struct RetryDelays {
    failures: Mutex<HashMap<String, u32>>,
}

impl RetryDelays {
    /// Returns the delay after another failure of a resource.
    #[must_use]
    pub fn after_failure(&self, resource: &str) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(resource.to_owned()).or_default();
        *count += 1;
        doubled_delay(*count)
    }

    /// Forgets the failures of a resource that was reconciled or is gone.
    pub fn forget(&self, resource: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(resource);
    }
}

/// Repeats a failed reconciliation after a delay. For `Controller::run`.
#[must_use]
pub fn error_policy<K>(resource: Arc<K>, error: &ControllerError, context: Arc<Context>) -> Action
where
    K: Resource<DynamicType = ()> + Debug,
{
    let key = resource_key(resource.as_ref());
    let delay = match error {
        ControllerError::Contended { delay, .. } => *delay,
        error => context.retries.after_failure(&key).min(error.max_delay()),
    };
    tracing::warn!(resource = key, %error, delay_ms = delay.as_millis(), "a reconciliation failed");
    Action::requeue(delay)
}

/// Returns the key of a resource: `Kind/namespace/name`.
pub(crate) fn resource_key<K: Resource<DynamicType = ()>>(resource: &K) -> String {
    let namespace = resource.namespace().unwrap_or_default();
    format!("{}/{namespace}/{}", K::kind(&()), resource.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_with_each_failure_up_to_a_maximum() {
        let delays = RetryDelays::default();
        let three: Vec<_> = (0..3).map(|_| delays.after_failure("a").as_millis()).collect();
        assert_eq!(three, [500, 1000, 2000]);
        assert_eq!(delays.after_failure("b").as_millis(), 500);
        let last = (0..40).map(|_| delays.after_failure("a")).last();
        assert_eq!(last, Some(MAX_DELAY));
        delays.forget("a");
        assert_eq!(delays.after_failure("a"), FIRST_DELAY);
    }
}
