//! The section `builtins.subagents`.

use std::time::Duration;

use toolyard_core::access::CallPrice;

use crate::{
    field_type::{BoundedCountField, CountField, SizeField, TextField, TimeoutField},
    formats,
    section::section,
};

/// With less not even a short task fits.
const MIN_BYTES: usize = 1 << 10;

section! {
    /// Subagents: agents that work on a task in the background, with the tools of their caller. Their model is that of
    /// `llm`, or without it that of the client that starts them (MCP sampling with tools).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SubagentLimits: Default = "subagents" {
        /// Id of the model, with `llm`. Default: that of `llm`.
        pub model: Option<String> = "model", TextField::new(formats::model), optional;
        /// Maximum number of running subagents of one key, or of all callers without a key together; more are refused.
        pub concurrent: usize = "concurrent", CountField, default 3;
        /// Maximum number of running subagents in one gateway; more are refused.
        pub total_concurrent: usize = "totalConcurrent", CountField, default 16;
        /// Time limit of a subagent whose caller chooses none.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(600);
        /// Maximum time limit that a caller may choose.
        pub max_timeout: Duration = "maxTimeout", TimeoutField, default Duration::from_secs(3600);
        /// Maximum size of a task, at least 1 KiB: description and context together.
        pub task_bytes: usize = "taskBytes", SizeField(MIN_BYTES), default 128 << 10;
        /// Maximum number of messages of the model.
        pub turns: usize = "turns", CountField, default 50;
        /// Maximum number of concurrent calls of one subagent; further ones wait.
        pub concurrent_calls: usize = "concurrentCalls", BoundedCountField { min: 1, max: 16 }, default 4;
        /// Maximum number of tools that a subagent sees. With more it sees those that find and call others, if the
        /// search is enabled, or else the first ones.
        pub listed_tools: usize = "listedTools", CountField, default 64;
        /// Maximum characters of a tool's result; the rest is cut off.
        pub result_chars: usize = "resultChars", CountField, default 16_000;
        /// Maximum number of tokens of one subagent, in all requests and replies.
        pub tokens: usize = "tokens", CountField, default 1_000_000;
        /// Maximum number of tokens in one message of a client's model.
        pub reply_tokens: usize = "replyTokens", CountField, default 8_192;
        /// Maximum cost of one subagent, in the unit of the prices. Default: no limit.
        pub cost: Option<CallPrice> = "cost", TextField::new(formats::price).examples(&["0.50"]), optional;
        /// Price of a million tokens in requests, for endpoints that do not report their cost.
        pub input_price: Option<CallPrice> = "inputPrice", TextField::new(formats::price).examples(&["3"]), optional;
        /// Price of a million tokens in replies, for endpoints that do not report their cost.
        pub output_price: Option<CallPrice> = "outputPrice", TextField::new(formats::price).examples(&["15"]), optional;
        /// Maximum size of the whiteboards of one key, or of all callers without a key together, at least 1 KiB.
        pub board_bytes: usize = "boardBytes", SizeField(MIN_BYTES), default 1 << 20;
        /// Maximum size of all whiteboards of a gateway, at least 1 KiB.
        pub total_board_bytes: usize = "totalBoardBytes", SizeField(MIN_BYTES), default 16 << 20;
    }
}
