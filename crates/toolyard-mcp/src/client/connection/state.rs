//! The state of a connection that a task opens and keeps.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::watch;
use toolyard_core::{ErrorCode, FailureCause, SecretRedactor, ToolError};

use super::{ConnectError, UpstreamConnection};

/// The state of the connection to a server.
#[derive(Clone)]
pub(in crate::client) enum ConnectionState {
    /// A connection is being opened.
    Connecting,
    /// The connection is open.
    Up(Arc<UpstreamConnection>),
    /// The last attempt failed for this reason.
    Down(DownReason),
    /// The process was stopped because it was idle. The next call starts it again.
    Asleep,
}

/// The reason why there is no connection.
#[derive(Clone)]
pub(in crate::client) struct DownReason {
    /// The cause, for the log and the status, without secrets.
    pub(in crate::client) cause: Arc<FailureCause>,
    /// The reason for callers.
    pub(in crate::client) reason: Cow<'static, str>,
}

impl DownReason {
    pub(in crate::client) fn of(error: &ConnectError, secrets: &SecretRedactor) -> Self {
        Self { cause: error.cause(secrets).into(), reason: error.reason() }
    }
}

impl ConnectionState {
    /// Returns the connection, unless it is closed already.
    pub(in crate::client) fn connection(&self) -> Option<&Arc<UpstreamConnection>> {
        match self {
            Self::Up(connection) if !connection.is_closed() => Some(connection),
            _ => None,
        }
    }
}

/// Waits for the connection while it is being opened. The caller limits the wait.
///
/// # Errors
/// When the last attempt to connect has failed.
pub(in crate::client) async fn wait_connected(
    state: &watch::Receiver<ConnectionState>,
) -> Result<Arc<UpstreamConnection>, ToolError> {
    if let Some(connection) = state.borrow().connection() {
        return Ok(connection.clone());
    }
    let is_decided =
        |state: &ConnectionState| state.connection().is_some() || matches!(state, ConnectionState::Down(_));
    let mut state = state.clone();
    match state.wait_for(is_decided).await.as_deref() {
        Ok(ConnectionState::Up(connection)) => Ok(connection.clone()),
        Ok(ConnectionState::Down(reason)) => {
            let error = ToolError::new(ErrorCode::Unavailable, "The server cannot be reached").unsent();
            Err(error.because(reason.reason.clone()).caused_by(reason.cause.to_string()))
        }
        Ok(ConnectionState::Connecting | ConnectionState::Asleep) | Err(_) => {
            Err(ToolError::new(ErrorCode::Unavailable, "The gateway is stopping").unsent())
        }
    }
}
