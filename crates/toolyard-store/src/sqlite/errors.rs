//! Classification of SQLite errors.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use tokio::sync::mpsc::error::TrySendError;
use toolyard_core::store::{StoreError, StoreErrorKind};

/// The store error. Its cause is the message of SQLite alone, as the error of the driver repeats it.
pub(super) fn store_error(error: rusqlite::Error) -> StoreError {
    StoreError::new(error_kind(&error), error.to_string())
}

/// Classifies an error.
pub(super) fn error_kind(error: &rusqlite::Error) -> StoreErrorKind {
    let Some(code) = error.sqlite_error() else {
        // A column has an unexpected type.
        return StoreErrorKind::Unreadable;
    };
    match code.code {
        ErrorCode::DiskFull | ErrorCode::TooBig => StoreErrorKind::Full,
        // The shared memory file, the index of the write-ahead log, could not grow.
        _ if code.extended_code == SQLITE_IOERR_SHMSIZE => StoreErrorKind::Full,
        ErrorCode::DatabaseCorrupt
        | ErrorCode::NotADatabase
        | ErrorCode::SchemaChanged
        | ErrorCode::TypeMismatch
        | ErrorCode::Unknown => StoreErrorKind::Unreadable,
        _ => StoreErrorKind::Unavailable,
    }
}

/// The store error if the queue of a thread is full or closed.
pub(super) fn queue_error<T>(error: &TrySendError<T>) -> StoreError {
    match error {
        TrySendError::Full(_) => StoreError::new(StoreErrorKind::Busy, "the queue is full"),
        TrySendError::Closed(_) => thread_ended(),
    }
}

/// The store error if a thread has ended before it replied.
pub(super) fn thread_ended() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the thread of the store has ended")
}
