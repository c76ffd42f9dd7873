//! Labels of metrics: limited in number and looked up once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram};
use toolyard_core::ErrorCode;

use super::names;

/// Outcome of a call, as distinguished by labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStatus {
    Ok,
    ToolError,
    Refused(ErrorCode),
}

/// Number of outcomes.
const STATUSES: usize = ErrorCode::ALL.len() + 2;

impl CallStatus {
    pub(super) const fn of(verdict: Result<bool, ErrorCode>) -> Self {
        match verdict {
            Ok(true) => Self::Ok,
            Ok(false) => Self::ToolError,
            Err(code) => Self::Refused(code),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => names::OK,
            Self::ToolError => names::TOOL_ERROR,
            Self::Refused(code) => code.row().wire,
        }
    }

    /// The error type by the semantic conventions. `None` for a success.
    pub(super) fn error_type(self) -> Option<KeyValue> {
        (self != Self::Ok).then(|| KeyValue::new(names::ERROR_TYPE, self.name()))
    }

    fn number(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::ToolError => 1,
            Self::Refused(code) => {
                2 + ErrorCode::ALL.iter().position(|known| *known == code).unwrap_or_default()
            }
        }
    }
}

/// One value for each outcome of a call, such as an instrument that is already bound to its labels, so that no call
/// compares them with those of all others.
pub(super) struct StatusSlots<T>([OnceLock<T>; STATUSES]);

impl<T> StatusSlots<T> {
    /// Returns the value of an outcome, which `create` creates the first time.
    pub(super) fn get(&self, status: CallStatus, create: impl FnOnce() -> T) -> &T {
        self.0[status.number()].get_or_init(create)
    }
}

impl<T> Default for StatusSlots<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

/// The bound instruments of one tool.
pub(super) struct ToolLabels {
    /// Name of the tool in metrics.
    pub(super) tool: Arc<str>,
    /// [`names::INVOCATIONS`] and [`names::INVOKE_DURATION`].
    pub(super) invocations: StatusSlots<(BoundCounter<u64>, BoundHistogram<f64>)>,
    /// [`names::SERVER_DURATION`], by transport.
    pub(super) requests: [StatusSlots<BoundHistogram<f64>>; 2],
    /// [`names::CLIENT_DURATION`].
    pub(super) upstream_requests: StatusSlots<BoundHistogram<f64>>,
}

impl ToolLabels {
    fn of(tool: Arc<str>) -> Arc<Self> {
        let (invocations, requests, upstream_requests) = Default::default();
        Arc::new(Self { tool, invocations, requests, upstream_requests })
    }
}

/// The labels of all tools. A limited number of tools have labels of their own; the others share one set. A name keeps
/// its labels when its tool is removed, because existing time series stay as well.
pub(super) struct ToolLabelTable {
    by_name: RwLock<HashMap<Arc<str>, Arc<ToolLabels>>>,
    limit: usize,
    overflow: Arc<ToolLabels>,
}

impl ToolLabelTable {
    pub(super) fn new(limit: usize) -> Self {
        Self { by_name: RwLock::default(), limit, overflow: ToolLabels::of(names::OTHER.into()) }
    }

    /// Returns the labels of a published tool. Names from callers must not come here, because callers may invent them.
    pub(super) fn get(&self, tool: &Arc<str>) -> Arc<ToolLabels> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        match by_name.get(tool) {
            Some(labels) => return labels.clone(),
            None if by_name.len() >= self.limit => return self.overflow.clone(),
            None => drop(by_name),
        }
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if by_name.len() >= self.limit && !by_name.contains_key(tool) {
            return self.overflow.clone();
        }
        by_name.entry(tool.clone()).or_insert_with_key(|tool| ToolLabels::of(tool.clone())).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_tools_are_limited() {
        let tools = ToolLabelTable::new(2);
        let by_name = |name: &str| tools.get(&name.into()).tool.to_string();
        assert_eq!(["a", "b", "c", "a", "d"].map(by_name), ["a", "b", "other", "a", "other"]);
    }

    #[test]
    fn every_status_has_its_own_slot() {
        let ends = [CallStatus::Ok, CallStatus::ToolError]
            .into_iter()
            .chain(ErrorCode::ALL.map(CallStatus::Refused));
        let slots = StatusSlots::default();
        for status in ends.clone() {
            slots.get(status, || status.name());
        }
        for status in ends {
            assert_eq!(*slots.get(status, || unreachable!("it was made")), status.name());
        }
    }
}
