//! Errors of starting sandboxed programs.

use std::io;

use toolyard_process::SpawnError;

use crate::{IsolationLevel, LayerReport};

/// Error of starting a sandboxed program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The machine lacks layers that the isolation requires.
    #[error("this machine lacks the required isolation: {}; {}", layer_list(.missing), remedy(*.level))]
    Unenforceable {
        /// Missing layers.
        missing: Vec<LayerReport>,
        /// Isolation level of the machine.
        level: IsolationLevel,
    },
    /// The limits, paths or variables of the sandbox are invalid.
    #[error("invalid sandbox specification: {0}")]
    InvalidSpec(String),
    /// A system call of the preparation failed.
    #[error("cannot {step}")]
    Prepare {
        /// Failed step.
        step: &'static str,
        /// Cause.
        source: io::Error,
    },
    /// The process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

fn layer_list(missing: &[LayerReport]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the alternative to installing the missing layers.
const fn remedy(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::None => {
            "`best-effort` isolation requires isolation of memory and files; without it programs run only \
             with `isolation: none`, as the user of the gateway"
        }
        _ => "or allow `best-effort` isolation",
    }
}

impl SandboxError {
    pub(crate) fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Prepare { step, source }
    }
}
