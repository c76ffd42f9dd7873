//! Executable version of a function.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

/// Programming language of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceLanguage {
    /// Python 3, in the interpreter of the machine.
    Python,
    /// JavaScript (ES2023), synchronous.
    JavaScript,
    /// Lua 5.4.
    Lua,
}

impl SourceLanguage {
    /// All languages.
    pub const ALL: [Self; 3] = [Self::Python, Self::JavaScript, Self::Lua];

    /// File extension, which is also the name on the command line.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Python => "py",
            Self::JavaScript => "js",
            Self::Lua => "lua",
        }
    }

    /// Name of the file with the handler.
    #[must_use]
    pub const fn entry_file(self) -> &'static str {
        match self {
            Self::Python => "cortexone_function.py",
            Self::JavaScript => "cortexone_function.js",
            Self::Lua => "cortexone_function.lua",
        }
    }
}

/// Name of the handler function, which is called with the event and the context.
pub const HANDLER: &str = "cortexone_handler";

/// A version of a function, ready to run. Its key identifies it.
#[derive(Clone)]
pub struct FunctionCode {
    /// Key of the code. Equal keys mean equal code, so a changed draft has a new key.
    pub key: Arc<str>,
    /// Programming language.
    pub language: SourceLanguage,
    /// Files, by path relative to the folder.
    pub files: Vec<(String, Bytes)>,
    /// Folder of installed Python packages.
    pub packages: Option<PathBuf>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// True if the code may access the network; JavaScript and Lua do so with `fetch`.
    pub network: bool,
    /// True if the handler may call [tools](crate::runtime::ToolHost) of the host, which are its third argument. Only
    /// JavaScript, which may be asynchronous then, and Lua.
    pub tools: bool,
    /// Limits of a call.
    pub limits: CodeLimits,
}

impl fmt::Debug for FunctionCode {
    /// Omits the environment, which contains secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, language, .. } = self;
        f.debug_struct("FunctionCode").field("key", key).field("language", language).finish_non_exhaustive()
    }
}

/// Limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLimits {
    /// Total time. Default: 300 s.
    pub time_limit: Duration,
    /// Memory of the worker, in bytes. Default: 512 MiB.
    pub memory_bytes: u64,
    /// Maximum length of the answer, in bytes. Default: 8 MiB.
    pub output_bytes: usize,
    /// Maximum number of concurrent calls of the version. Default: 16.
    pub max_concurrent: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(300),
            memory_bytes: 512 << 20,
            output_bytes: 8 << 20,
            max_concurrent: 16,
        }
    }
}

/// Context of a call: the second argument of the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    /// Id of the function.
    pub function_id: Arc<str>,
    /// Version, such as `1.2.0` or `draft`.
    pub version: Arc<str>,
    /// Id of the call, as in logs.
    pub request_id: Arc<str>,
    /// Time at which the call is cancelled.
    pub deadline: SystemTime,
}
