//! What the errors of SQLite mean.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use tokio::sync::mpsc::error::TrySendError;
use toolyard_core::store::{StoreError, Trouble};

/// The error for callers. Its cause is SQLite's own message, without the driver's error, which says the same again.
pub(super) fn error(error: rusqlite::Error) -> StoreError {
    StoreError::new(trouble(&error), error.to_string())
}

/// The kind of trouble that an error is.
pub(super) fn trouble(error: &rusqlite::Error) -> Trouble {
    let Some(code) = error.sqlite_error() else {
        // A column that has another type than ours have.
        return Trouble::Unreadable;
    };
    match code.code {
        ErrorCode::DiskFull | ErrorCode::TooBig => Trouble::Full,
        // The index of the changes grows in a file of its own, for which there was no room.
        _ if code.extended_code == SQLITE_IOERR_SHMSIZE => Trouble::Full,
        ErrorCode::DatabaseCorrupt
        | ErrorCode::NotADatabase
        | ErrorCode::SchemaChanged
        | ErrorCode::TypeMismatch
        | ErrorCode::Unknown => Trouble::Unreadable,
        _ => Trouble::Unavailable,
    }
}

/// That a thread has so much to do that it takes no more, or is gone.
pub(super) fn refused<T>(error: &TrySendError<T>) -> StoreError {
    match error {
        TrySendError::Full(_) => StoreError::new(Trouble::Busy, "its queue is full"),
        TrySendError::Closed(_) => gone(),
    }
}

/// That a thread is gone, and the work with it.
pub(super) fn gone() -> StoreError {
    StoreError::new(Trouble::Unavailable, "its thread has ended")
}
