//! Tables of the file, and their migrations.

use std::fmt::Display;

use rusqlite::{Connection, TransactionBehavior};

use super::errors;
use crate::StoreOpenError;

/// Migrations from each version to the next.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../migrations/sqlite/0001_tables.sql"),
    include_str!("../../migrations/sqlite/0002_words.sql"),
    include_str!("../../migrations/sqlite/0003_blocks.sql"),
];

/// The version of the tables that this program uses.
pub(crate) const LATEST_VERSION: i64 = MIGRATIONS.len() as i64;

/// The application ID that the first migration sets; it identifies a file of Toolyard.
const APPLICATION_ID: i64 = 0x546F_6F6C;

/// A file that cannot be used.
pub(super) enum SqliteMigrationError {
    NewerVersion(i64),
    ForeignDatabase,
    Database(rusqlite::Error),
}

/// Migrates the tables, each version in a transaction of its own. Those of a new file are created in one: each commit
/// waits for the disk. Other processes that migrate wait meanwhile.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), SqliteMigrationError> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = version(&transaction)?;
        if version > LATEST_VERSION {
            return Err(SqliteMigrationError::NewerVersion(version));
        }
        let missing = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version..));
        let Some(missing @ [next, ..]) = missing else { return Ok(()) };
        let steps = if version == 0 { missing } else { std::slice::from_ref(next) };
        for step in steps {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "user_version", version + steps.len() as i64)?;
        transaction.commit()?;
    }
}

/// The version of the tables; zero if there are none yet.
pub(super) fn version(connection: &Connection) -> Result<i64, SqliteMigrationError> {
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0));
    let is_ours = number("PRAGMA application_id")? == APPLICATION_ID;
    if !is_ours && number("SELECT count(*) FROM sqlite_schema")? > 0 {
        return Err(SqliteMigrationError::ForeignDatabase);
    }
    Ok(number("PRAGMA user_version")?)
}

impl SqliteMigrationError {
    /// Adds the location.
    pub(super) fn into_open_error(self, location: &impl Display) -> StoreOpenError {
        let location = location.to_string();
        match self {
            Self::NewerVersion(found) => {
                StoreOpenError::NewerVersion { location, version: found, supported: LATEST_VERSION }
            }
            Self::ForeignDatabase => StoreOpenError::ForeignDatabase { location },
            Self::Database(error) => {
                StoreOpenError::Database { location, source: errors::store_error(error) }
            }
        }
    }
}

impl From<rusqlite::Error> for SqliteMigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}
