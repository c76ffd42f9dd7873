//! Source of a function: its files and settings.
//!
//! - [`ProjectError`] and all limits;
//! - [`TestCase`]: a check that a version must pass before it is published;
//! - [`folder`]: a function in a folder; [`settings`]: `function.json`;
//! - [`ProjectUpload`]: a function as it is uploaded to a gateway;
//! - [`template`]: files of a new function.

mod expectation;
pub mod folder;
pub mod settings;
pub mod template;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolyard_core::Json;
use toolyard_core::access::CallPrice;

use crate::code::{CodeLimits, SourceLanguage};

pub use upload::{ProjectUpload, UploadError};

/// Protocol of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionKind {
    /// JSON-RPC requests, as an MCP server: the handler returns the response.
    #[default]
    Mcp,
    /// Arbitrary events: the handler returns `{statusCode, body}`.
    Function,
}

/// Source of a function. A published version is a numbered copy of it.
#[derive(Clone, PartialEq, Eq)]
pub struct FunctionProject {
    /// Protocol.
    pub kind: FunctionKind,
    /// Programming language.
    pub language: SourceLanguage,
    /// Files, by path relative to the folder, with `/` as the separator.
    pub files: Vec<(String, Bytes)>,
    /// Limits of a call.
    pub limits: CodeLimits,
    /// Environment variables. In a value, `${NAME}` stands for a variable of the host.
    pub environment: BTreeMap<String, String>,
    /// True if the function may access the network.
    pub network: bool,
    /// Price of a call.
    pub price: CallPrice,
    /// Test cases that must pass before publication.
    pub tests: Vec<TestCase>,
    /// Release notes.
    pub notes: String,
}

/// An event and the expected reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// Name in reports.
    pub name: String,
    /// Event for the handler.
    pub event: Json,
    /// Required part of the reply. `None`: the reply must not be an error.
    pub expect: Option<Json>,
}

/// File that lists the Python packages of a function.
pub const REQUIREMENTS_FILE: &str = "requirements.txt";

/// Maximum number of files of a function.
pub const MAX_FILES: usize = 200;
/// Maximum size of all files of a function together, in bytes.
pub const MAX_BYTES: usize = 10 << 20;
/// Maximum number of test cases of a function.
pub const MAX_TESTS: usize = 100;
/// Maximum size of all test cases of a function together, in bytes.
pub const MAX_TEST_BYTES: usize = 1 << 20;
/// Maximum length of a file name, in bytes.
const MAX_PATH_BYTES: usize = 200;
/// Maximum length of the notes, in bytes.
const MAX_NOTES_BYTES: usize = 4000;
/// Maximum number of variables, and maximum length of a value, in bytes.
const MAX_ENVIRONMENT: (usize, usize) = (100, 32 << 10);

/// Maximum length of a function id, in bytes.
const MAX_ID_BYTES: usize = 100;

/// True if a text can be the id of a function: ids are part of addresses, file names and logs.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    id.len() <= MAX_ID_BYTES
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(is_plain)
}

/// Fault of a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// The file with the handler is missing.
    #[error("missing file {0} with the handler")]
    NoEntry(&'static str),
    /// A file name is invalid.
    #[error("invalid file name {0:?}: must be relative, without `..`, and at most 200 bytes long")]
    Path(String),
    /// Two files have the same name.
    #[error("duplicate file {0:?}")]
    Twice(String),
    /// A path is both a file and a folder of another file.
    #[error("{0:?} is both a file and a folder")]
    Folder(String),
    /// A number or size exceeds its maximum.
    #[error("too many {what}: {found}, the maximum is {most}")]
    TooMany {
        /// Counted items.
        what: &'static str,
        /// Actual number.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// A limit is out of range.
    #[error("{name} must be between {least} and {most}, not {found}")]
    Limit {
        /// Name of the limit.
        name: &'static str,
        /// Actual value.
        found: u64,
        /// Minimum value.
        least: u64,
        /// Maximum value.
        most: u64,
    },
    /// The name of a variable is invalid.
    #[error(
        "invalid variable name {0:?}: letters, digits and `_`, and no variable of loaders or interpreters"
    )]
    Variable(String),
}

impl FunctionProject {
    /// Creates a project with a single file and default settings.
    #[must_use]
    pub fn from_source(kind: FunctionKind, language: SourceLanguage, source: impl Into<Bytes>) -> Self {
        Self {
            kind,
            language,
            files: vec![(language.entry_file().to_owned(), source.into())],
            limits: CodeLimits::default(),
            environment: BTreeMap::new(),
            network: false,
            price: CallPrice::default(),
            tests: Vec::new(),
            notes: String::new(),
        }
    }

    /// Required packages: the content of `requirements.txt`.
    #[must_use]
    pub fn requirements(&self) -> Option<&Bytes> {
        requirements(self.language, &self.files)
    }

    /// Checks all limits.
    ///
    /// # Errors
    /// For the first violation.
    pub fn check(&self) -> Result<(), ProjectError> {
        self.check_files()?;
        self.check_limits()?;
        self.check_environment()?;
        check_maximum("test cases", self.tests.len(), MAX_TESTS)?;
        let bytes = |json: &Json| json.as_bytes().len();
        let tests = self.tests.iter();
        let sum = tests.map(|test| bytes(&test.event) + test.expect.as_ref().map_or(0, bytes)).sum();
        check_maximum("bytes of test cases", sum, MAX_TEST_BYTES)?;
        check_maximum("bytes of notes", self.notes.len(), MAX_NOTES_BYTES)
    }

    fn check_files(&self) -> Result<(), ProjectError> {
        check_maximum("files", self.files.len(), MAX_FILES)?;
        check_maximum(
            "bytes in its files",
            self.files.iter().map(|(_, bytes)| bytes.len()).sum(),
            MAX_BYTES,
        )?;
        let mut names = BTreeSet::new();
        for (path, _) in &self.files {
            if !is_path(path) {
                return Err(ProjectError::Path(path.clone()));
            }
            if !names.insert(path.as_str()) {
                return Err(ProjectError::Twice(path.clone()));
            }
        }
        let mut folders =
            names.iter().flat_map(|path| path.match_indices('/').map(move |(end, _)| &path[..end]));
        if let Some(folder) = folders.find(|folder| names.contains(folder)) {
            return Err(ProjectError::Folder(folder.to_owned()));
        }
        let entry = self.language.entry_file();
        names.contains(entry).then_some(()).ok_or(ProjectError::NoEntry(entry))
    }

    fn check_limits(&self) -> Result<(), ProjectError> {
        let CodeLimits { time_limit, memory_bytes, output_bytes, max_concurrent: concurrent } = self.limits;
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let limits = [
            ("the time in seconds", time_limit.as_secs(), 1, 900),
            ("the memory in MiB", memory_bytes >> 20, 16, 4096),
            ("the output in KiB", number(output_bytes) >> 10, 1, 64 << 10),
            ("the number of concurrent calls", number(concurrent), 1, 256),
        ];
        let outside = limits.iter().find(|(_, found, least, most)| !(least..=most).contains(&found));
        match *outside.unwrap_or(&("", 0, 0, 0)) {
            ("", ..) => Ok(()),
            (name, found, least, most) => Err(ProjectError::Limit { name, found, least, most }),
        }
    }

    fn check_environment(&self) -> Result<(), ProjectError> {
        check_maximum("variables", self.environment.len(), MAX_ENVIRONMENT.0)?;
        for (name, value) in &self.environment {
            if !is_variable(name) || value.contains('\0') {
                return Err(ProjectError::Variable(name.clone()));
            }
            check_maximum("bytes in a variable", value.len(), MAX_ENVIRONMENT.1)?;
        }
        Ok(())
    }
}

pub(crate) fn requirements(language: SourceLanguage, files: &[(String, Bytes)]) -> Option<&Bytes> {
    let file = files.iter().find(|(path, _)| language == SourceLanguage::Python && path == REQUIREMENTS_FILE);
    file.map(|(_, bytes)| bytes).filter(|bytes| !bytes.trim_ascii().is_empty())
}

fn check_maximum(what: &'static str, found: usize, most: usize) -> Result<(), ProjectError> {
    (found <= most).then_some(()).ok_or(ProjectError::TooMany { what, found, most })
}

/// True if a path is valid as a file name of a function: it stays in the folder on every system.
fn is_path(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\\' | ':');
    path.len() <= MAX_PATH_BYTES && path.split('/').all(is_part) && path.chars().all(is_plain)
}

/// True if a text is valid as the name of a variable. Variables of dynamic loaders and interpreters are not permitted.
fn is_variable(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_read = ["LD_", "DYLD_", "PYTHON", "TOOLYARD_"].iter().any(|prefix| name.starts_with(prefix));
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_plain)
        && !is_read
}

impl TestCase {
    /// Returns the first place where a reply lacks the expected value; `None` if it contains that: all expected members
    /// of an object, and equal elements of an array. Numbers are compared by value.
    #[must_use]
    pub fn difference(&self, reply: &Json) -> Option<String> {
        self.expect.as_ref().and_then(|expect| expectation::difference(&reply.to_value(), &expect.to_value()))
    }
}

impl fmt::Debug for FunctionProject {
    /// Omits the values of the environment, which may be secret, and the content of files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.files.iter().map(|(path, bytes)| (path, bytes.len())).collect();
        let environment: Vec<_> = self.environment.keys().collect();
        f.debug_struct("FunctionProject")
            .field("kind", &self.kind)
            .field("language", &self.language)
            .field("files", &files)
            .field("environment", &environment)
            .finish_non_exhaustive()
    }
}

/// Limits in `function.json` and in the store. Missing ones have their default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u64>,
    #[serde(default, rename = "outputKiB", skip_serializing_if = "Option::is_none")]
    output_kib: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concurrent: Option<usize>,
}

impl From<StoredLimits> for CodeLimits {
    fn from(written: StoredLimits) -> Self {
        let StoredLimits { seconds, memory_mib, output_kib, concurrent } = written;
        let default = Self::default();
        Self {
            time_limit: seconds.map_or(default.time_limit, Duration::from_secs),
            memory_bytes: memory_mib.map_or(default.memory_bytes, |mib| mib.saturating_mul(1 << 20)),
            output_bytes: output_kib.map_or(default.output_bytes, |kib| kib.saturating_mul(1 << 10)),
            max_concurrent: concurrent.unwrap_or(default.max_concurrent),
        }
    }
}

impl From<CodeLimits> for StoredLimits {
    fn from(limits: CodeLimits) -> Self {
        Self {
            seconds: Some(limits.time_limit.as_secs()),
            memory_mib: Some(limits.memory_bytes >> 20),
            output_kib: Some(limits.output_bytes >> 10),
            concurrent: Some(limits.max_concurrent),
        }
    }
}

#[cfg(test)]
mod tests;
