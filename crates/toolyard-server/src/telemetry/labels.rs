//! Labels of metrics: bounded, and made once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use opentelemetry::KeyValue;
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

/// A set of labels for each way in which a call of one thing can end.
#[derive(Default)]
pub(super) struct Sets([OnceLock<Box<[KeyValue]>>; STATUSES]);

impl Sets {
    /// The labels for this end, which `make` makes the first time.
    pub(super) fn get(&self, status: Status, make: impl FnOnce() -> Vec<KeyValue>) -> &[KeyValue] {
        self.0[status.number()].get_or_init(|| make().into())
    }
}

/// The labels of one tool.
pub(super) struct Labels {
    /// What the tool is called in metrics.
    pub(super) tool: Arc<str>,
    /// For [`names::INVOCATIONS`] and [`names::INVOKE_DURATION`].
    pub(super) of_invocations: Sets,
    /// For [`names::SERVER_DURATION`], by what the request came by.
    pub(super) of_requests: [Sets; 2],
    /// For [`names::CLIENT_DURATION`].
    pub(super) of_legs: Sets,
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
        let sets = Sets::default();
        for status in ends.clone() {
            sets.get(status, || vec![KeyValue::new(names::STATUS, status.name())]);
        }
        for status in ends {
            let label = sets.get(status, || unreachable!("it was made"));
            assert_eq!(label[0].value.as_str(), status.name());
        }
    }
}
