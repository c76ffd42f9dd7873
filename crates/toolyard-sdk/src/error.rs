//! Errors of building and serving a server.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Error of building or serving a server.
///
/// `{:?}` prints a readable message with all sources, because a `main` that returns the error prints it in that format.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An item cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The connection broke, or the client sent a message that is too long.
    #[error("lost the connection to the client")]
    Connection(#[source] io::Error),
    /// The address cannot be bound.
    #[error("cannot listen on {0}")]
    Listen(String, #[source] io::Error),
    /// Every tool would be open to all machines that reach the address.
    #[error(
        "{0} is reachable from other machines and callers are not authenticated: listen on 127.0.0.1, or set \
         `allow_unauthenticated` in `ServerOptions` if something in front of the server authenticates them"
    )]
    Unauthenticated(SocketAddr),
    /// The system refuses a resource that serving needs: threads or signal handlers.
    #[error("cannot start serving")]
    Start(#[source] io::Error),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a registration. A failed registration changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name or URI is empty.
    #[error("the {member} of a {kind} must not be empty")]
    EmptyName {
        /// `tool`, `prompt`, `resource` or `resource template`.
        kind: &'static str,
        /// `name` or `URI`.
        member: &'static str,
    },
    /// Another item has the same name.
    #[error("the {kind} {name:?} is already registered: remove it first, or choose another name")]
    Duplicate {
        /// `tool`, `prompt`, `resource` or `resource template`.
        kind: &'static str,
        /// The name, URI or template.
        name: String,
    },
    /// A name that some clients would reject (MCP 2026-07-28, server/tools, tool names).
    #[error("invalid tool name {0:?}: use 1 to 128 letters, digits, `_`, `-` and `.`")]
    IllegalName(String),
    /// A schema that does not describe an object.
    #[error("the {schema} schema of the tool {tool:?} must describe an object, but {fault}: use a struct")]
    NotAnObject {
        /// The tool.
        tool: String,
        /// `input` or `output`.
        schema: &'static str,
        /// The fault of the schema.
        fault: String,
    },
    /// A value that is not a JSON Schema.
    #[error("the {schema} schema of the tool {tool:?} is not a valid JSON Schema: {fault}")]
    BadSchema {
        /// The tool.
        tool: String,
        /// `input` or `output`.
        schema: &'static str,
        /// The fault and its location.
        fault: String,
    },
    /// A definition that clients could not read.
    #[error("invalid definition of the {kind} {name:?}: {fault}")]
    BadDefinition {
        /// `tool`, `prompt`, `resource` or `resource template`.
        kind: &'static str,
        /// The name, URI or template.
        name: String,
        /// The fault of the definition.
        fault: String,
    },
    /// A completer for an item that is not registered.
    #[error("no {kind} {name:?} to complete: register it first")]
    Unknown {
        /// `prompt` or `resource template`.
        kind: &'static str,
        /// The name or template.
        name: String,
    },
    /// A completer for an argument that does not exist.
    #[error("the {kind} {name:?} has no {argument:?} to complete, only {known}")]
    UnknownArgument {
        /// `prompt` or `resource template`.
        kind: &'static str,
        /// The name or template.
        name: String,
        /// The argument or variable.
        argument: String,
        /// The existing arguments or variables.
        known: String,
    },
    /// The server has ended.
    #[error("the server has ended: a handle does not keep it alive")]
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_is_a_readable_message() {
        let in_use = io::Error::new(io::ErrorKind::AddrInUse, "address in use");
        let error = Error::Listen("127.0.0.1:80".into(), in_use);
        assert_eq!(format!("{error:?}"), "cannot listen on 127.0.0.1:80: address in use");
        let error = Error::from(RegisterError::EmptyName { kind: "tool", member: "name" });
        assert_eq!(format!("{error:?}"), "the name of a tool must not be empty");
    }
}
