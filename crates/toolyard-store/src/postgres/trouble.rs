//! What the errors of PostgreSQL mean.

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use toolyard_core::store::{StoreError, Trouble};

/// The error for callers, with what the server says as its cause.
pub(super) fn error(error: Error) -> StoreError {
    StoreError::new(trouble(&error), error)
}

/// That no connection is to be had.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => self::error(error),
        PoolError::Timeout(TimeoutType::Wait) => StoreError::new(Trouble::Busy, "all connections are in use"),
        error => StoreError::new(Trouble::Unavailable, error),
    }
}

/// An error and its causes, as one text.
pub(crate) fn reason(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn trouble(error: &Error) -> Trouble {
    let Some(code) = error.code() else {
        // A connection that broke, or could not be made.
        return Trouble::Unavailable;
    };
    if *code == SqlState::DISK_FULL {
        return Trouble::Full;
    }
    // By the class of the code, which is its first two characters: what the server holds is not what a statement of
    // ours expects (22, 23, 42), or is damaged (XX).
    match code.code().get(..2) {
        Some("22" | "23" | "42" | "XX") => Trouble::Unreadable,
        _ => Trouble::Unavailable,
    }
}
