//! Labels of metrics: bounded, and looked up once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram};
use toolyard_core::Code;

use super::names;

/// How a call ended, as labels tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    ToolError,
    Refused(Code),
}

/// Ways in which a call can end.
const STATUSES: usize = Code::ALL.len() + 2;

impl Status {
    pub(super) const fn of(verdict: Result<bool, Code>) -> Self {
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

    /// What the conventions call it: nothing, where it is no error.
    pub(super) fn error_type(self) -> Option<KeyValue> {
        (self != Self::Ok).then(|| KeyValue::new(names::ERROR_TYPE, self.name()))
    }

    fn number(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::ToolError => 1,
            Self::Refused(code) => 2 + Code::ALL.iter().position(|known| *known == code).unwrap_or_default(),
        }
    }
}

/// What is written to for each way in which a call of one thing can end: an instrument that knows its labels already, so that no
/// call compares them with those of all the others.
pub(super) struct Ends<T>([OnceLock<T>; STATUSES]);

impl<T> Ends<T> {
    /// That of this end, which `make` makes the first time.
    pub(super) fn get(&self, status: Status, make: impl FnOnce() -> T) -> &T {
        self.0[status.number()].get_or_init(make)
    }
}

impl<T> Default for Ends<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

/// What is written to when a call of one tool has ended.
pub(super) struct Labels {
    /// What the tool is called in metrics.
    pub(super) tool: Arc<str>,
    /// [`names::INVOCATIONS`] and [`names::INVOKE_DURATION`].
    pub(super) of_invocations: Ends<(BoundCounter<u64>, BoundHistogram<f64>)>,
    /// [`names::SERVER_DURATION`], by what the request came by.
    pub(super) of_requests: [Ends<BoundHistogram<f64>>; 2],
    /// [`names::CLIENT_DURATION`].
    pub(super) of_legs: Ends<BoundHistogram<f64>>,
}

impl Labels {
    fn of(tool: Arc<str>) -> Arc<Self> {
        let (of_invocations, of_requests, of_legs) = Default::default();
        Arc::new(Self { tool, of_invocations, of_requests, of_legs })
    }
}

/// The labels of all tools. As many have their own name as there may be; the others share one. A name keeps its place when its
/// tool goes: the time series that are there already do not go either.
pub(super) struct Tools {
    named: RwLock<HashMap<Arc<str>, Arc<Labels>>>,
    most: usize,
    others: Arc<Labels>,
}

impl Tools {
    pub(super) fn new(most: usize) -> Self {
        Self { named: RwLock::default(), most, others: Labels::of(names::OTHER.into()) }
    }

    /// The labels of a tool that somebody publishes. What a caller invents must not come here.
    pub(super) fn get(&self, tool: &Arc<str>) -> Arc<Labels> {
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner);
        match named.get(tool) {
            Some(labels) => return labels.clone(),
            None if named.len() >= self.most => return self.others.clone(),
            None => drop(named),
        }
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= self.most && !named.contains_key(tool) {
            return self.others.clone();
        }
        named.entry(tool.clone()).or_insert_with_key(|tool| Labels::of(tool.clone())).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let tools = Tools::new(2);
        let named = |name: &str| tools.get(&name.into()).tool.to_string();
        assert_eq!(["a", "b", "c", "a", "d"].map(named), ["a", "b", "other", "a", "other"]);
    }

    #[test]
    fn every_end_has_a_place_of_its_own() {
        let ends = [Status::Ok, Status::ToolError].into_iter().chain(Code::ALL.map(Status::Refused));
        let places = Ends::default();
        for status in ends.clone() {
            places.get(status, || status.name());
        }
        for status in ends {
            assert_eq!(*places.get(status, || unreachable!("it was made")), status.name());
        }
    }
}
