//! A version of a function as it runs.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

/// What a function is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python 3, in the interpreter of the machine.
    Python,
    /// JavaScript (ES2023), synchronous.
    JavaScript,
    /// Lua 5.4.
    Lua,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 3] = [Self::Python, Self::JavaScript, Self::Lua];

    /// The end of the names of its files, which is also what the command line calls it by.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Python => "py",
            Self::JavaScript => "js",
            Self::Lua => "lua",
        }
    }

    /// The file that has the handler.
    #[must_use]
    pub const fn entry_file(self) -> &'static str {
        match self {
            Self::Python => "cortexone_function.py",
            Self::JavaScript => "cortexone_function.js",
            Self::Lua => "cortexone_function.lua",
        }
    }
}

/// The function that a file has to define: it is given the event and the context.
pub const HANDLER: &str = "cortexone_handler";

/// A version of a function, ready to run. It is compared by its key.
#[derive(Clone)]
pub struct Code {
    /// Which code it is. Two that have the same key are the same, so a draft has another one after each change.
    pub key: Arc<str>,
    /// What it is written in.
    pub language: Language,
    /// Its files, by their names relative to its folder.
    pub files: Vec<(String, Bytes)>,
    /// A folder of packages that Python finds, built of its `requirements.txt`.
    pub packages: Option<PathBuf>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
    /// Whether it may reach the network, in JavaScript and Lua by `fetch`.
    pub network: bool,
    /// What a call of it may take.
    pub limits: CodeLimits,
}

impl fmt::Debug for Code {
    /// Without its environment, which holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, language, .. } = self;
        f.debug_struct("Code").field("key", key).field("language", language).finish_non_exhaustive()
    }
}

/// What a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLimits {
    /// Time, in all. 300 s by default.
    pub wall: Duration,
    /// Memory of its worker, in bytes. 512 MiB by default.
    pub memory_bytes: u64,
    /// How long its answer may be, in bytes. 8 MiB by default.
    pub output_bytes: usize,
    /// How many calls of the version run at a time. 16 by default.
    pub concurrent: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(300),
            memory_bytes: 512 << 20,
            output_bytes: 8 << 20,
            concurrent: 16,
        }
    }
}

/// What a handler is told of its call: the second argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The function.
    pub function_id: Arc<str>,
    /// Its version, such as `1.2.0` or `draft`.
    pub version: Arc<str>,
    /// The call, in logs too.
    pub request_id: Arc<str>,
    /// When it is ended.
    pub deadline: SystemTime,
}
