//! How the process of a worker is started: the one place that knows.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use toolyard_process::{Child, Pipes, Processes, Program};

use super::guest;
use crate::code::{Code, Language};

/// What a worker for Python runs.
const PYTHON_WORKER: &str = include_str!("python_worker.py");

/// Starts the processes of workers.
#[derive(Clone)]
pub(super) struct Launcher {
    pub(super) processes: Processes,
    /// A program that calls [`super::work_if_asked`] at its very beginning.
    pub(super) program: PathBuf,
    pub(super) python: PathBuf,
}

/// A process that was started.
pub(super) struct Launched {
    pub(super) pipes: Pipes,
    /// The folder that is the worker's own, as it sees it.
    pub(super) folder: String,
    pub(super) packages: Option<String>,
    pub(super) process: Process,
}

/// What there is of a process. Dropping it ends it.
pub(super) struct Process {
    pub(super) child: Child,
    _folder: TempDir,
}

impl Launcher {
    pub(super) async fn launch(&self, code: &Code) -> Result<Launched, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = Program {
            work_dir: Some(folder.path().to_owned()),
            memory_bytes: Some(code.limits.memory_bytes),
            ..self.program(code.language)
        };
        let name: Arc<str> = format!("function:{}", code.key).into();
        let (child, pipes) =
            self.processes.start(&name, &program).await.map_err(|error| error.to_string())?;
        let packages = code.packages.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        Ok(Launched {
            pipes,
            folder: folder.path().to_string_lossy().into_owned(),
            packages,
            process: Process { child, _folder: folder },
        })
    }

    fn program(&self, language: Language) -> Program {
        let (command, args) = match language {
            Language::Python => (&self.python, ["-I", "-S", "-c", PYTHON_WORKER].map(Into::into).to_vec()),
            Language::JavaScript | Language::Lua => {
                (&self.program, [guest::REQUEST, language.extension()].map(Into::into).to_vec())
            }
        };
        Program { command: command.into(), args, ..Program::default() }
    }
}
