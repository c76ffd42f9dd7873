//! Why a server does not come to be, or does not serve.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a server does not come to be, or does not serve.
///
/// It is shown by `{:?}` as a person wants to read it, sources included, because that is how a `main` that returns it
/// ends.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A stream broke, or the client sent a message that is too long.
    #[error("the connection to the client broke")]
    Connection(#[source] io::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}")]
    Listen(String, #[source] io::Error),
    /// Anybody who reaches the address could call every tool.
    #[error(
        "{0} is reached from other machines, and nothing asks callers who they are: listen on 127.0.0.1, or set \
         `allow_unauthenticated` in `ServerOptions` if something in front of the server does"
    )]
    Unauthenticated(SocketAddr),
    /// The system does not give what serving takes: threads, or signals.
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

/// Why something cannot be registered. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// It has no name or URI.
    #[error("a {kind} without a {member} cannot be called: give it one")]
    Nameless {
        /// `tool`, `prompt`, `resource` or `resource template`.
        kind: &'static str,
        /// `name` or `URI`.
        member: &'static str,
    },
    /// There is one of that name.
    #[error("the {kind} {name:?} is registered already: remove that one first, or choose another name")]
    Duplicate {
        /// `tool`, `prompt`, `resource` or `resource template`.
        kind: &'static str,
        /// The name, URI or template.
        name: String,
    },
    /// A name that some clients would refuse (MCP 2026-07-28, server/tools, tool names).
    #[error(
        "the name of the tool {0:?} has to be 1 to 128 letters, digits, `_`, `-` and `.`: choose another one"
    )]
    IllegalName(String),
    /// A schema that is not one of an object.
    #[error("the {schema} schema of the tool {tool:?} has to be one of an object, but {fault}: use a struct")]
    NotAnObject {
        /// The tool.
        tool: String,
        /// `input` or `output`.
        schema: &'static str,
        /// What is wrong.
        fault: String,
    },
    /// A schema that is none.
    #[error("the {schema} schema of the tool {tool:?} is no JSON Schema: {fault}")]
    BadSchema {
        /// The tool.
        tool: String,
        /// `input` or `output`.
        schema: &'static str,
        /// What is wrong, and where.
        fault: String,
    },
    /// A definition that clients could not read.
    #[error("the {kind} {name:?} cannot be published: {fault}")]
    BadDefinition {
        /// `tool`, `prompt`, `resource` or `resource template`.
        kind: &'static str,
        /// The name, URI or template.
        name: String,
        /// What is wrong.
        fault: String,
    },
    /// A completion for something that is not there.
    #[error("there is no {kind} {name:?} to complete: register it first")]
    Unknown {
        /// `prompt` or `resource template`.
        kind: &'static str,
        /// The name or template.
        name: String,
    },
    /// A completion for an argument that is not there.
    #[error("the {kind} {name:?} has no {argument:?} to complete, only {known}")]
    UnknownArgument {
        /// `prompt` or `resource template`.
        kind: &'static str,
        /// The name or template.
        name: String,
        /// The argument or variable.
        argument: String,
        /// Those that there are.
        known: String,
    },
    /// The server is gone.
    #[error("the server has ended: a handle does not keep it")]
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_shows() {
        let taken = io::Error::new(io::ErrorKind::AddrInUse, "address in use");
        let error = Error::Listen("127.0.0.1:80".into(), taken);
        assert_eq!(format!("{error:?}"), "cannot listen on 127.0.0.1:80: address in use");
        let error = Error::from(RegisterError::Nameless { kind: "tool", member: "name" });
        assert_eq!(format!("{error:?}"), "a tool without a name cannot be called: give it one");
    }
}
