//! Classification of PostgreSQL errors.

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use toolyard_core::store::{StoreError, StoreErrorKind};

/// The store error, with the error of the server as its cause.
pub(super) fn store_error(error: Error) -> StoreError {
    StoreError::new(error_kind(&error), error)
}

/// The store error of a caller that got no connection.
pub(super) fn pool_error(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => self::store_error(error),
        PoolError::Timeout(TimeoutType::Wait) => {
            StoreError::new(StoreErrorKind::Busy, "all connections are in use")
        }
        error => StoreError::new(StoreErrorKind::Unavailable, error),
    }
}

/// The text of an error and its cause.
pub(crate) fn message_with_cause(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn error_kind(error: &Error) -> StoreErrorKind {
    let Some(code) = error.code() else {
        // The connection broke, or could not be opened.
        return StoreErrorKind::Unavailable;
    };
    if *code == SqlState::DISK_FULL {
        return StoreErrorKind::Full;
    }
    // By the class of the code, its first two characters: the data in the database does not fit our statements
    // (22, 23, 42), or is damaged (XX).
    match code.code().get(..2) {
        Some("22" | "23" | "42" | "XX") => StoreErrorKind::Unreadable,
        _ => StoreErrorKind::Unavailable,
    }
}
