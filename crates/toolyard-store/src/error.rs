//! The errors of opening and of backing up a store, each with its remedy.

use std::io;
use std::path::PathBuf;

use toolyard_core::store::{StoreError, StoreErrorKind};

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// The folder of the file is missing and cannot be created.
    #[error(
        "cannot create the folder {folder} of the store: grant this user write access, or choose another file \
         with `store: {{path: FILE}}` in the Toolyard document"
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file cannot be created or written.
    #[error(
        "cannot open the store {path} for writing: grant this user write access, or choose another file with \
         `store: {{path: FILE}}` in the Toolyard document"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// There is no store, and the caller does not create one.
    #[error(
        "no store at {location}: name the manifest of the gateway with `-f`; a gateway creates its store when it \
         starts, and `toolyard key create` creates one, too"
    )]
    Missing {
        /// Location of the missing store.
        location: String,
    },
    /// A newer version of Toolyard wrote the store.
    #[error(
        "the store {location} has version {version}, but this program supports version {supported} at most: use a \
         newer Toolyard, or restore a backup from before the upgrade"
    )]
    NewerVersion {
        /// Location of the store.
        location: String,
        /// Version of its tables.
        version: i64,
        /// The newest version that this program supports.
        supported: i64,
    },
    /// The file is the database of another program.
    #[error(
        "{location} is the database of another program: choose another file with `store: {{path: FILE}}` in \
         the Toolyard document"
    )]
    ForeignDatabase {
        /// Location of the database.
        location: String,
    },
    /// The URL is invalid. The reason does not repeat the URL.
    #[error("invalid URL of the store: {0}")]
    Url(String),
    /// The database refuses.
    #[error("cannot open the store {location}: {advice}", advice = advice(source.kind))]
    Database {
        /// Location of the store.
        location: String,
        /// The error of the database.
        #[source]
        source: StoreError,
    },
}

/// A store cannot be backed up.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be read.
    #[error(transparent)]
    Open(#[from] StoreOpenError),
    /// The copy cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file of the copy.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The copy failed midway.
    #[error("cannot copy the store to {path}")]
    Copy {
        /// The file of the copy.
        path: PathBuf,
        /// The error of the database.
        #[source]
        source: StoreError,
    },
    /// The file exists. It is not replaced: it may be the only good copy.
    #[error("{0} already exists; choose another file")]
    Exists(PathBuf),
    /// A store in memory ends with its process.
    #[error(
        "cannot back up a store in memory: set `store: {{path: FILE}}` in the Toolyard document to persist it"
    )]
    Memory,
    /// PostgreSQL has a tool of its own.
    #[error("cannot back up a store on PostgreSQL: run `pg_dump --schema=toolyard`")]
    Postgres,
}

impl StoreOpenError {
    /// The kind of store error that this is, as the methods of the store report it.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        match self {
            Self::NewerVersion { .. } | Self::ForeignDatabase { .. } => StoreErrorKind::Unreadable,
            Self::Database { source, .. } => source.kind,
            Self::Folder { .. } | Self::File { .. } | Self::Missing { .. } | Self::Url(_) => {
                StoreErrorKind::Unavailable
            }
        }
    }
}

const fn advice(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::Unavailable => {
            "check that it is running, admits this user, and is not locked by another process"
        }
        StoreErrorKind::Full => "free space on its disk",
        StoreErrorKind::Unreadable => {
            "restore a backup, or choose another location in `store` of the Toolyard document"
        }
        StoreErrorKind::Busy => "try again",
    }
}
