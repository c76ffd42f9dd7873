//! What an author makes: the files of a function, and what is said of them.
//!
//! - [`ProjectError`] and the bounds of everything;
//! - [`TestCase`]: what a version has to answer before it is published;
//! - [`folder`]: a function in a folder; [`settings`]: what `function.json` says;
//! - [`SentProject`]: a function as it is sent to a gateway;
//! - [`template`]: where an author begins.

pub mod folder;
mod sent;
pub mod settings;
pub mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::Json;
use toolyard_core::access::Price;

use crate::code::{CodeLimits, Language};

pub use sent::{SentError, SentProject};

/// What a function answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// JSON-RPC requests, as a server of MCP: its handler returns the response.
    #[default]
    Mcp,
    /// Events of its own: its handler returns `{statusCode, body}`.
    Function,
}

/// A function as its author has it. What is published is a copy of it, under a number.
#[derive(Clone, PartialEq, Eq)]
pub struct Project {
    /// What it answers.
    pub kind: Kind,
    /// What it is written in.
    pub language: Language,
    /// Its files, by their names relative to its folder, with `/` between their parts.
    pub files: Vec<(String, Bytes)>,
    /// What a call may take.
    pub limits: CodeLimits,
    /// Variables of its environment. In a value, `${NAME}` stands for a variable that the host lends.
    pub environment: BTreeMap<String, String>,
    /// Whether it may reach the network.
    pub network: bool,
    /// What a call costs.
    pub price: Price,
    /// What it has to answer before it is published.
    pub tests: Vec<TestCase>,
    /// What is new, for people.
    pub notes: String,
}

/// An event, and what has to be in the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// What it is called by in reports.
    pub name: String,
    /// What the handler is given.
    pub event: Json,
    /// What the reply has to contain. `None`: it only must not be a failure.
    pub expect: Option<Json>,
}

/// The file that Python's packages are listed in.
pub const REQUIREMENTS: &str = "requirements.txt";

/// The most files of a function.
pub const MOST_FILES: usize = 200;
/// The most bytes of all files of a function together.
pub const MOST_BYTES: usize = 10 << 20;
/// The most test cases of a function.
pub const MOST_TESTS: usize = 100;
/// The most bytes of all test cases of a function together.
pub const MOST_TEST_BYTES: usize = 1 << 20;
/// The longest name of a file, in bytes.
const LONGEST_PATH: usize = 200;
/// The longest notes, in bytes.
const LONGEST_NOTES: usize = 4000;
/// The most variables, and the longest value of one, in bytes.
const ENVIRONMENT: (usize, usize) = (100, 32 << 10);

/// The longest id of a function, in bytes.
const LONGEST_ID: usize = 100;

/// Whether a function can be called that: it stands in addresses, names of files and logs.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    id.len() <= LONGEST_ID && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(is_plain)
}

/// Why a project is no function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// The file with the handler is missing.
    #[error("a function in this language has its handler in {0}, which is not there")]
    NoEntry(&'static str),
    /// A file has a name that it cannot have.
    #[error("{0:?} is no name for a file of a function: relative, without `..`, and of at most 200 bytes")]
    Path(String),
    /// Two files have the same name.
    #[error("there are two files called {0:?}")]
    Twice(String),
    /// What is a file is the folder of another file.
    #[error("{0:?} cannot be both a file of a function and a folder of it")]
    Folder(String),
    /// There is more of something than there may be.
    #[error("a function has at most {most} {what}: this one has {found}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A limit is not within its bounds.
    #[error("{name} of a function is between {least} and {most}: {found} is not")]
    Limit {
        /// Which one.
        name: &'static str,
        /// What it is.
        found: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// A variable has a name that it cannot have.
    #[error(
        "{0:?} cannot be the name of a function's variable: letters, digits and `_`, and none that loaders read"
    )]
    Variable(String),
}

impl Project {
    /// A project of one file, with nothing said about it.
    #[must_use]
    pub fn of_source(kind: Kind, language: Language, source: impl Into<Bytes>) -> Self {
        Self {
            kind,
            language,
            files: vec![(language.entry_file().to_owned(), source.into())],
            limits: CodeLimits::default(),
            environment: BTreeMap::new(),
            network: false,
            price: Price::default(),
            tests: Vec::new(),
            notes: String::new(),
        }
    }

    /// The packages that it wants: the text of its `requirements.txt`.
    #[must_use]
    pub fn requirements(&self) -> Option<&Bytes> {
        requirements(self.language, &self.files)
    }

    /// Whether everything is within its bounds.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self) -> Result<(), ProjectError> {
        self.check_files()?;
        self.check_limits()?;
        self.check_environment()?;
        most("test cases", self.tests.len(), MOST_TESTS)?;
        let bytes = |json: &Json| json.as_bytes().len();
        let tests = self.tests.iter();
        let sum = tests.map(|test| bytes(&test.event) + test.expect.as_ref().map_or(0, bytes)).sum();
        most("bytes of test cases", sum, MOST_TEST_BYTES)?;
        most("bytes of notes", self.notes.len(), LONGEST_NOTES)
    }

    fn check_files(&self) -> Result<(), ProjectError> {
        most("files", self.files.len(), MOST_FILES)?;
        most("bytes in its files", self.files.iter().map(|(_, bytes)| bytes.len()).sum(), MOST_BYTES)?;
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
        let CodeLimits { wall, memory_bytes, output_bytes, concurrent } = self.limits;
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let limits = [
            ("the time in seconds", wall.as_secs(), 1, 900),
            ("the memory in MiB", memory_bytes >> 20, 16, 4096),
            ("the output in KiB", number(output_bytes) >> 10, 1, 64 << 10),
            ("the number of calls at a time", number(concurrent), 1, 256),
        ];
        let outside = limits.iter().find(|(_, found, least, most)| !(least..=most).contains(&found));
        match *outside.unwrap_or(&("", 0, 0, 0)) {
            ("", ..) => Ok(()),
            (name, found, least, most) => Err(ProjectError::Limit { name, found, least, most }),
        }
    }

    fn check_environment(&self) -> Result<(), ProjectError> {
        most("variables", self.environment.len(), ENVIRONMENT.0)?;
        for (name, value) in &self.environment {
            if !is_variable(name) || value.contains('\0') {
                return Err(ProjectError::Variable(name.clone()));
            }
            most("bytes in a variable", value.len(), ENVIRONMENT.1)?;
        }
        Ok(())
    }
}

pub(crate) fn requirements(language: Language, files: &[(String, Bytes)]) -> Option<&Bytes> {
    let file = files.iter().find(|(path, _)| language == Language::Python && path == REQUIREMENTS);
    file.map(|(_, bytes)| bytes).filter(|bytes| !bytes.trim_ascii().is_empty())
}

fn most(what: &'static str, found: usize, most: usize) -> Result<(), ProjectError> {
    (found <= most).then_some(()).ok_or(ProjectError::TooMany { what, found, most })
}

/// Whether a file of a function may be called that: nothing that leads out of its folder, on whichever system.
fn is_path(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\\' | ':');
    path.len() <= LONGEST_PATH && path.split('/').all(is_part) && path.chars().all(is_plain)
}

/// Whether a variable may be called that. What dynamic loaders and interpreters read is not for authors to say.
fn is_variable(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_read = ["LD_", "DYLD_", "PYTHON", "TOOLYARD_"].iter().any(|prefix| name.starts_with(prefix));
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_plain)
        && !is_read
}

impl TestCase {
    /// Whether a reply has everything that is expected: each member of an object, the elements of an array one by one.
    /// Numbers are compared by their value.
    #[must_use]
    pub fn is_met_by(&self, reply: &Json) -> bool {
        self.expect.as_ref().is_none_or(|expect| contains(&reply.to_value(), &expect.to_value()))
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (Value::Number(whole), Value::Number(part)) => whole == part || whole.as_f64() == part.as_f64(),
        (whole, part) => whole == part,
    }
}

impl fmt::Debug for Project {
    /// Without the values of its environment, which may be secrets, and without its files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.files.iter().map(|(path, bytes)| (path, bytes.len())).collect();
        let environment: Vec<_> = self.environment.keys().collect();
        f.debug_struct("Project")
            .field("kind", &self.kind)
            .field("language", &self.language)
            .field("files", &files)
            .field("environment", &environment)
            .finish_non_exhaustive()
    }
}

/// Limits as they are written down. What is not said is as it is by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WrittenLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u64>,
    #[serde(default, rename = "outputKiB", skip_serializing_if = "Option::is_none")]
    output_kib: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concurrent: Option<usize>,
}

impl From<WrittenLimits> for CodeLimits {
    fn from(written: WrittenLimits) -> Self {
        let WrittenLimits { seconds, memory_mib, output_kib, concurrent } = written;
        let default = Self::default();
        Self {
            wall: seconds.map_or(default.wall, Duration::from_secs),
            memory_bytes: memory_mib.map_or(default.memory_bytes, |mib| mib.saturating_mul(1 << 20)),
            output_bytes: output_kib.map_or(default.output_bytes, |kib| kib.saturating_mul(1 << 10)),
            concurrent: concurrent.unwrap_or(default.concurrent),
        }
    }
}

impl From<CodeLimits> for WrittenLimits {
    fn from(limits: CodeLimits) -> Self {
        Self {
            seconds: Some(limits.wall.as_secs()),
            memory_mib: Some(limits.memory_bytes >> 20),
            output_kib: Some(limits.output_bytes >> 10),
            concurrent: Some(limits.concurrent),
        }
    }
}

#[cfg(test)]
mod tests;
