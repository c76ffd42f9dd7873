//! Runs scripts in the workers of hosted functions. Each script has a process of its own, without network.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::Json;
use toolyard_functions::RunError;
use toolyard_functions::code::{CallContext, CodeLimits, FunctionCode, SourceLanguage};
use toolyard_functions::runtime::{FunctionRuntime, RuntimeOptions, ToolHost};
use toolyard_manifest::CodeSettings;
use toolyard_sandbox::Sandbox;

/// Member of the answer of a prelude with the value that the script returned.
const VALUE: &str = "value";

/// Additional size of the answer of a prelude, in bytes.
const ANSWER_BYTES: usize = 16;

/// Additional time of the workers, so that a script ends by its own deadline.
const WORKER_TIME: Duration = Duration::from_secs(5);

/// Language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptLanguage {
    /// JavaScript (ES2023), with `await`.
    JavaScript,
    /// Lua 5.4.
    Lua,
}

impl ScriptLanguage {
    /// Name of the script in error messages and stack traces.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::JavaScript => "script.js",
            Self::Lua => "script",
        }
    }

    const fn source_language(self) -> SourceLanguage {
        match self {
            Self::JavaScript => SourceLanguage::JavaScript,
            Self::Lua => SourceLanguage::Lua,
        }
    }

    const fn prelude(self) -> &'static str {
        match self {
            Self::JavaScript => include_str!("prelude.js"),
            Self::Lua => include_str!("prelude.lua"),
        }
    }
}

/// Runs scripts, within limits.
#[derive(Clone)]
pub struct ScriptEngine {
    runtime: FunctionRuntime,
    preludes: [Arc<FunctionCode>; 2],
}

impl ScriptEngine {
    /// Creates an engine whose processes run in this sandbox.
    #[must_use]
    pub fn new(sandbox: Sandbox, settings: &CodeSettings) -> Self {
        // One language uses at most half of the workers.
        let workers = settings.concurrent.saturating_mul(2);
        let options =
            RuntimeOptions { workers, max_waiting: settings.queued, ..RuntimeOptions::new(sandbox) };
        let limits = CodeLimits {
            time_limit: settings.longest_timeout.max(settings.timeout) + WORKER_TIME,
            memory_bytes: settings.memory_bytes as u64,
            output_bytes: settings.output_bytes.saturating_add(ANSWER_BYTES),
            max_concurrent: settings.concurrent,
        };
        let preludes = [ScriptLanguage::JavaScript, ScriptLanguage::Lua].map(|language| {
            let source = language.source_language();
            Arc::new(FunctionCode {
                key: format!("tool script {}", source.extension()).into(),
                language: source,
                files: vec![(
                    source.entry_file().to_owned(),
                    Bytes::from_static(language.prelude().as_bytes()),
                )],
                packages: None,
                environment: Vec::new(),
                network: false,
                tools: true,
                limits,
            })
        });
        Self { runtime: FunctionRuntime::new(options), preludes }
    }

    /// Runs a script for at most `time`, and returns the value that it returned; `None` if it returned nothing. Dropping
    /// the future kills its process, and cancels its calls.
    ///
    /// # Errors
    /// If it fails, exceeds a limit, or cannot run.
    pub async fn run(
        &self,
        language: ScriptLanguage,
        code: &str,
        time: Duration,
        tools: &dyn ToolHost,
    ) -> Result<Option<Json>, RunError> {
        let event = Json::from_value(&json!({ "code": code, "name": language.file() }));
        let context = CallContext {
            function_id: "script".into(),
            version: "".into(),
            request_id: "".into(),
            deadline: SystemTime::now() + time,
        };
        let prelude = &self.preludes[language as usize];
        let output = self.runtime.run_with_tools(prelude, &event, &context, tools).await;
        let output = output.map_err(|error| match error {
            RunError::OutputTooLarge { limit } => {
                RunError::OutputTooLarge { limit: limit.saturating_sub(ANSWER_BYTES) }
            }
            other => other,
        })?;
        Ok(output.answer.to_object().ok().and_then(|answer| answer.get(VALUE).cloned()))
    }
}
