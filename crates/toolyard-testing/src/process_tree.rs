//! The process tree of a handler, including processes that try to escape it.

use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::is_running;

/// Finds the processes of a handler by an environment variable that they inherit.
pub struct ProcessTree {
    mark: String,
}

const MARKER_VARIABLE: &str = "TOOLYARD_TEST_FAMILY";

impl ProcessTree {
    /// Marks a handler, so that its processes can be found.
    pub fn mark(handler: &mut Value) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let mark = format!("{}-{}-{}", handler["name"].as_str().unwrap(), std::process::id(), now.as_nanos());
        handler["mcpConfig"]["env"][MARKER_VARIABLE] = mark.as_str().into();
        Self { mark }
    }

    /// Returns the running processes: the supervisor, the program and all descendants.
    pub fn members(&self) -> Vec<u32> {
        let variable = format!("{MARKER_VARIABLE}={}", self.mark);
        let is_member = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()) && is_running(*pid)
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_member).collect()
    }

    /// Returns the process whose name, without arguments, has this prefix.
    #[track_caller]
    pub fn member_named(&self, name: &str) -> u32 {
        let name_of = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut named = self.members().into_iter().filter(|pid| name_of(*pid).starts_with(name));
        match (named.next(), named.next()) {
            (Some(pid), None) => pid,
            found => panic!("not one {name}: {found:?}"),
        }
    }
}

/// Kills a process.
#[track_caller]
pub fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// Kills what is left, so that failed tests leave no processes. Some of them multiply.
impl Drop for ProcessTree {
    fn drop(&mut self) {
        for _ in 0..100 {
            let members = self.members();
            if members.is_empty() {
                return;
            }
            for pid in members.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}
