//! How a connection stands that is made and kept by a task of its own.

use std::error::Error;
use std::sync::Arc;

use tokio::sync::watch;
use toolyard_core::{Code, Secrets, ToolError};

use super::connection::{Connection, OpenError};

/// How the server is to be reached now.
#[derive(Clone)]
pub(super) enum Link {
    /// An attempt is under way.
    Connecting,
    /// Through this.
    Up(Arc<Connection>),
    /// Not at all: the last attempt failed for this reason.
    Down(Arc<str>),
    /// Its process was ended because nobody called it. The next call has it started again.
    Asleep,
}

impl Link {
    /// The connection, unless its server is gone already.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        match self {
            Self::Up(connection) if !connection.is_over() => Some(connection),
            _ => None,
        }
    }
}

/// The connection. While it is being made, this waits: whoever makes it bounds for how long.
///
/// # Errors
/// When the last attempt to make it has failed.
pub(super) async fn connected(link: &watch::Receiver<Link>) -> Result<Arc<Connection>, ToolError> {
    if let Some(connection) = link.borrow().connection() {
        return Ok(connection.clone());
    }
    let is_decided = |link: &Link| link.connection().is_some() || matches!(link, Link::Down(_));
    let mut link = link.clone();
    match link.wait_for(is_decided).await.as_deref() {
        Ok(Link::Up(connection)) => Ok(connection.clone()),
        Ok(Link::Down(reason)) => {
            let error = ToolError::new(Code::Unavailable, "The server cannot be reached").unsent();
            Err(error.caused_by(&**reason))
        }
        Ok(Link::Connecting | Link::Asleep) | Err(_) => {
            Err(ToolError::new(Code::Unavailable, "The gateway is stopping").unsent())
        }
    }
}

/// Why there is no connection, with all that caused it. A server's own words are among that.
pub(super) fn reason(error: &OpenError, secrets: &Secrets) -> String {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    secrets.brief(&reason).into_owned()
}
