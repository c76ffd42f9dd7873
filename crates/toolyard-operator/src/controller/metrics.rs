//! Counters of the operator.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters of the operator, in the text format of Prometheus.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    /// By name, first label and second label; all of them constants of the program or kinds of objects.
    counters: Mutex<BTreeMap<(&'static str, String, &'static str), u64>>,
    is_leader: AtomicBool,
}

impl OperatorMetrics {
    /// Counts a reconciliation of a kind.
    pub fn count_reconciliation(&self, kind: &str, is_ok: bool) {
        let result = if is_ok { "ok" } else { "error" };
        self.count("toolyard_operator_reconciliations_total", kind, result);
    }

    /// Counts a request that changes an object of a kind: `apply`, `status`, `delete`.
    pub fn count_write(&self, kind: &str, verb: &'static str) {
        self.count("toolyard_operator_writes_total", kind, verb);
    }

    fn count(&self, name: &'static str, kind: &str, label: &'static str) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.entry((name, kind.to_owned(), label)).or_default() += 1;
    }

    /// Sets whether this replica runs the controllers.
    pub fn set_leader(&self, is_leader: bool) {
        self.is_leader.store(is_leader, Ordering::Relaxed);
    }

    /// Returns `true` if this replica runs the controllers.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.is_leader.load(Ordering::Relaxed)
    }

    /// Formats all counters.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "# TYPE toolyard_operator_leader gauge\ntoolyard_operator_leader {}\n",
            u8::from(self.is_leader())
        );
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = "";
        for ((name, kind, label), count) in counters.iter() {
            if *name != last {
                writeln!(text, "# TYPE {name} counter").ok();
                last = name;
            }
            let second = if name.contains("writes") { "verb" } else { "result" };
            writeln!(text, "{name}{{kind=\"{kind}\",{second}=\"{label}\"}} {count}").ok();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_written_as_text() {
        let metrics = OperatorMetrics::default();
        metrics.count_write("Deployment", "apply");
        metrics.count_write("Deployment", "apply");
        metrics.count_reconciliation("LanguageTool", false);
        metrics.set_leader(true);
        let expected = "\
# TYPE toolyard_operator_leader gauge
toolyard_operator_leader 1
# TYPE toolyard_operator_reconciliations_total counter
toolyard_operator_reconciliations_total{kind=\"LanguageTool\",result=\"error\"} 1
# TYPE toolyard_operator_writes_total counter
toolyard_operator_writes_total{kind=\"Deployment\",verb=\"apply\"} 2
";
        assert_eq!(metrics.text(), expected);
    }
}
