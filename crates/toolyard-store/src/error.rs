//! Why a store cannot be opened or backed up, and what to do about it.

use std::io;
use std::path::PathBuf;

use toolyard_core::store::{StoreError, Trouble};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder of the file is not there, and cannot be made.
    #[error(
        "cannot make the folder {folder} for the store: let this user write there, or name another file \
         with `store: {{path: FILE}}` in the Toolyard document"
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file cannot be made, or not be written.
    #[error(
        "cannot open the store {path} for writing: let this user write it, or name another file with \
         `store: {{path: FILE}}` in the Toolyard document"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is none, and none is to be made.
    #[error(
        "there is no store at {location}: name the manifest of the gateway with `-f`; a gateway makes its store when it \
         starts, and `toolyard key create` makes one, too"
    )]
    Missing {
        /// Where it would be.
        location: String,
    },
    /// A later version of Toolyard has written it.
    #[error(
        "the store {location} is of version {found}, and this program knows version {newest}: use a later \
         Toolyard, or restore the backup that was made before"
    )]
    Later {
        /// Where it is.
        location: String,
        /// Its version.
        found: i64,
        /// The latest one that this program knows.
        newest: i64,
    },
    /// It is the database of another program.
    #[error(
        "{location} is the database of another program: name another file with `store: {{path: FILE}}` in \
         the Toolyard document"
    )]
    Foreign {
        /// Where it is.
        location: String,
    },
    /// The URL is none. The reason does not repeat it.
    #[error("the URL of the store cannot be understood: {0}")]
    Url(String),
    /// This program was built without what a PostgreSQL database takes.
    #[error("this program was built without PostgreSQL: build it with the feature `postgres`")]
    WithoutPostgres,
    /// The database says no.
    #[error("cannot open the store {location}: {advice}", advice = advice(source.trouble))]
    Database {
        /// Where it is.
        location: String,
        /// What it says.
        #[source]
        source: StoreError,
    },
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The copy cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file of the copy.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The copy has failed on its way.
    #[error("cannot copy the store to {path}")]
    Copy {
        /// The file of the copy.
        path: PathBuf,
        /// What the database says.
        #[source]
        source: StoreError,
    },
    /// What is there is not replaced: it may be the only good copy.
    #[error("{0} is there already: name a file that is not")]
    Exists(PathBuf),
    /// A store in memory ends with its process.
    #[error("a store in memory cannot be backed up: nothing of it is kept")]
    Memory,
    /// PostgreSQL has a tool of its own.
    #[error("a store on PostgreSQL is backed up with its own tool: pg_dump --schema=toolyard")]
    Postgres,
}

impl OpenError {
    /// What kind of trouble the store is in, as its methods would say it.
    #[must_use]
    pub const fn trouble(&self) -> Trouble {
        match self {
            Self::Later { .. } | Self::Foreign { .. } => Trouble::Unreadable,
            Self::Database { source, .. } => source.trouble,
            Self::Folder { .. }
            | Self::File { .. }
            | Self::Missing { .. }
            | Self::Url(_)
            | Self::WithoutPostgres => Trouble::Unavailable,
        }
    }
}

const fn advice(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Unavailable => "see that it is there, takes this user, and is not locked by somebody else",
        Trouble::Full => "make room on its disk",
        Trouble::Unreadable => "restore a backup, or name another place in `store` of the Toolyard document",
        Trouble::Busy => "try again",
    }
}
