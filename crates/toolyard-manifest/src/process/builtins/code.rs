//! The section `builtins.code`.

use std::time::Duration;

use crate::{
    field_type::{BoundedCountField, CountField, SizeField, TimeoutField},
    section::section,
};

/// With less the engine of a language does not start.
const MIN_MEMORY_BYTES: usize = 32 << 20;
/// With less not even an error message fits.
const MIN_BYTES: usize = 1 << 10;

section! {
    /// Settings of `run_tool_script` and `describe_tools`: scripts that call the tools of their caller.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CodeSettings: Default = "code" {
        /// Time limit of a script whose call does not set one.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(60);
        /// Maximum time limit that a call may set. No call of a built-in tool takes longer than 15 minutes.
        pub longest_timeout: Duration = "longestTimeout", TimeoutField, default Duration::from_secs(300);
        /// Memory of a script, at least 32 MiB.
        pub memory_bytes: usize = "memory", SizeField(MIN_MEMORY_BYTES), default 128 << 20;
        /// Maximum size of a script, at least 1 KiB.
        pub code_bytes: usize = "codeBytes", SizeField(MIN_BYTES), default 64 << 10;
        /// Maximum number of calls that a script makes.
        pub calls: usize = "calls", CountField, default 500;
        /// Maximum number of calls of a script at the same time; others wait.
        pub concurrent_calls: usize = "concurrentCalls", BoundedCountField { min: 1, max: 100 }, default 8;
        /// Maximum size of the results that a script gets, all calls together, at least 1 KiB.
        pub result_bytes: usize = "resultBytes", SizeField(MIN_BYTES), default 64 << 20;
        /// Maximum size of the value that a script returns, at least 1 KiB. Large results are cut besides, as those of all
        /// tools.
        pub output_bytes: usize = "outputBytes", SizeField(MIN_BYTES), default 1 << 20;
        /// Maximum size of the printed output that a model gets, at least 1 KiB. The middle is left out of more.
        pub log_bytes: usize = "logBytes", SizeField(MIN_BYTES), default 8 << 10;
        /// Maximum number of running scripts.
        pub concurrent: usize = "concurrent", CountField, default 8;
        /// Maximum number of waiting scripts; more are refused.
        pub queued: usize = "queued", CountField, default 64;
        /// Maximum number of tools whose results are described as observed, for all callers together.
        pub observed: usize = "observed", CountField, default 2_000;
    }
}
