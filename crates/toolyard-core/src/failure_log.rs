//! The log of failed attempts to reach a server: a repeated failure is logged once, and counted.

use crate::cause::FailureCause;

/// The last logged failure of a server, and the number of its repetitions since.
#[derive(Debug, Default)]
pub struct FailureLog {
    last: Option<FailureCause>,
    repetitions: u64,
}

impl FailureLog {
    /// Records a failure; returns whether it is to be logged, with the repetitions of the one before.
    pub fn record(&mut self, cause: &FailureCause) -> Option<u64> {
        if self.last.as_ref().is_some_and(|last| last.is_same(cause)) {
            self.repetitions += 1;
            return None;
        }
        self.last = Some(cause.clone());
        Some(std::mem::take(&mut self.repetitions))
    }

    /// Records a success; returns the repetitions of the failure before.
    pub fn clear(&mut self) -> u64 {
        self.last = None;
        std::mem::take(&mut self.repetitions)
    }

    /// True if the last attempt has failed.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        self.last.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::CauseCode;

    #[test]
    fn failure_is_logged_once_a_change() {
        let mut log = FailureLog::default();
        let exit = |status: u8, output: &str| {
            FailureCause::new(CauseCode::ProcessExited, format!("status {status}")).with_output(output)
        };
        let steps = [exit(1, "a"), exit(1, "b"), exit(1, "c"), exit(2, "c"), exit(1, "c"), exit(1, "c")];
        let logged: Vec<_> = steps.iter().map(|cause| log.record(cause)).collect();
        assert_eq!(logged, [Some(0), None, None, Some(2), Some(0), None]);
        assert_eq!((log.is_failing(), log.clear(), log.is_failing(), log.clear()), (true, 1, false, 0));
        assert_eq!(log.record(&exit(1, "c")), Some(0));
    }
}
