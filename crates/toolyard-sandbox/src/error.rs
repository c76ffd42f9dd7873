//! Why a program does not run in a cell.

use std::io;

use toolyard_process::SpawnError;

use crate::LayerReport;

/// A program cannot run in a cell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// This machine has not all walls, and isolation is required.
    #[error(
        "this machine cannot isolate programs as it has to: {}; or allow `best-effort` isolation",
        said(.0)
    )]
    Unenforceable(Vec<LayerReport>),
    /// What the cell is to have is impossible.
    #[error("no program can run in such a cell: {0}")]
    Cell(String),
    /// The system did not let us prepare it.
    #[error("cannot {step}")]
    Prepare {
        /// What was to be done.
        step: &'static str,
        /// Why it could not.
        source: io::Error,
    },
    /// The program cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

fn said(missing: &[LayerReport]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl SandboxError {
    pub(crate) fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Prepare { step, source }
    }
}
