//! The section `builtins.wisps`.

use std::{path::PathBuf, time::Duration};

use crate::{
    field_type::{BoundedCountField, CountField, FileField, SizeField, TextField, TimeoutField},
    formats,
    section::section,
};

/// With less not even the definition of one step fits.
const MIN_BYTES: usize = 4 << 10;

section! {
    /// Limits of `spawn_wisps`. The group is only enabled if the section is present. It needs working memory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WispSettings: Default = "wisps" {
        /// Id of the model of `Llm` steps. Default: that of `llm`; without `llm`, such steps are refused. A step has the other
        /// limits of a subagent.
        pub model: Option<String> = "model", TextField::new(formats::model), optional;
        /// Maximum number of wisps of one call, which run in parallel; more are refused.
        pub batch: usize = "batch", BoundedCountField { min: 1, max: 10 }, default 10;
        /// Maximum number of running wisps in one gateway; others wait.
        pub concurrent: usize = "concurrent", CountField, default 40;
        /// Maximum number of steps of a wisp; more are refused.
        pub steps: usize = "steps", BoundedCountField { min: 1, max: 50 }, default 20;
        /// Time limit of a call with all of its wisps.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(10 * 60);
        /// Maximum size of the definitions of one call, at least 4 KiB.
        pub definition_bytes: usize = "definitionBytes", SizeField(MIN_BYTES), default 256 << 10;
        /// Maximum size of the output of a step, and of the arguments of a call, at least 4 KiB. A step with more fails.
        pub output_bytes: usize = "outputBytes", SizeField(MIN_BYTES), default 1 << 20;
        /// Length above which an input of a model is put into working memory in chunks, in characters.
        pub input_chars: usize = "inputChars", CountField, default 8_000;
        /// Maximum length of the output of an earlier step in the prompt of a model, in characters.
        pub prior_chars: usize = "priorChars", CountField, default 4_000;
        /// Maximum length of the output of a wisp in the result of the call, in characters.
        pub result_chars: usize = "resultChars", CountField, default 2_000;
        /// Lifetime of outputs and summaries in working memory.
        pub ttl: Duration = "ttl", TimeoutField, default Duration::from_secs(60 * 60);
        /// Lifetime of the outputs of a wisp once all of its steps have succeeded.
        pub success_ttl: Duration = "successTtl", TimeoutField, default Duration::from_secs(5 * 60);
        /// Number of times that a caller can spawn the same wisp within `repeatWindow`; more fail.
        pub repeats: usize = "repeats", BoundedCountField { min: 1, max: 1000 }, default 30;
        /// See `repeats`.
        pub repeat_window: Duration = "repeatWindow", TimeoutField, default Duration::from_secs(5 * 60);
        /// Folder in which steps read and write files, relative to the folder of the manifest. It must exist. Default: none, so
        /// that `output_to` only names an output.
        pub shared_folder: Option<PathBuf> = "sharedFolder", FileField, optional;
        /// Maximum size of all files in `sharedFolder`, at least 4 KiB. A step whose output does not fit fails.
        pub shared_bytes: usize = "sharedBytes", SizeField(MIN_BYTES), default 1 << 30;
    }
}
