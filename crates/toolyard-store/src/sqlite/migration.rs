//! The tables of a file, and how older ones become these.

use std::fmt::Display;

use rusqlite::{Connection, TransactionBehavior};

use super::trouble;
use crate::OpenError;

/// What makes of each version the next.
const MIGRATIONS: [&str; 2] = [
    include_str!("../../migrations/sqlite/0001_tables.sql"),
    include_str!("../../migrations/sqlite/0002_words.sql"),
];

/// The version of the tables that the statements here are written for.
pub(crate) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// What the first migration sets, by which a file is known for one of ours.
const APPLICATION: i64 = 0x546F_6F6C;

/// Why a file is of no use.
pub(super) enum Unfit {
    Later(i64),
    Foreign,
    Failed(rusqlite::Error),
}

/// Brings the tables up to date, each version in a transaction of its own. Others who want the same wait meanwhile.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Unfit> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = version(&transaction)?;
        if version > NEWEST {
            return Err(Unfit::Later(version));
        }
        let Some(next) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
            return Ok(());
        };
        transaction.execute_batch(next)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
}

/// The version of the tables; zero where there are none yet.
pub(super) fn version(connection: &Connection) -> Result<i64, Unfit> {
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0));
    let is_ours = number("PRAGMA application_id")? == APPLICATION;
    if !is_ours && number("SELECT count(*) FROM sqlite_schema")? > 0 {
        return Err(Unfit::Foreign);
    }
    Ok(number("PRAGMA user_version")?)
}

impl Unfit {
    /// As an error that says where.
    pub(super) fn at(self, location: &impl Display) -> OpenError {
        let location = location.to_string();
        match self {
            Self::Later(found) => OpenError::Later { location, found, newest: NEWEST },
            Self::Foreign => OpenError::Foreign { location },
            Self::Failed(error) => OpenError::Database { location, source: trouble::error(error) },
        }
    }
}

impl From<rusqlite::Error> for Unfit {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}
