//! Opens connections to one server, and remembers what it has found out about it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::time::timeout;
use toolyard_core::{Target, Tool};

use super::connection::{Connection, OpenError};
use super::declared::Declared;
use super::{ClientOptions, Endpoint};
use crate::wire::{Era, TaskSupport};

/// How a server is reached.
pub(super) struct Opener {
    /// For the log.
    pub(super) name: Arc<str>,
    pub(super) endpoint: Endpoint,
    pub(super) options: Arc<ClientOptions>,
    /// It was of the legacy era when it was last connected to, and is not asked again: some die of the question.
    is_legacy: AtomicBool,
    /// The tools that it runs as tasks only, where its calls are to say so.
    tasks: RwLock<HashSet<Arc<str>>>,
}

impl Opener {
    pub(super) fn new(name: &str, endpoint: Endpoint, options: ClientOptions) -> Self {
        let options = Arc::new(options);
        Self {
            name: name.into(),
            endpoint,
            options,
            is_legacy: AtomicBool::new(false),
            tasks: RwLock::default(),
        }
    }

    /// Whether it is a server over HTTP.
    pub(super) const fn is_remote(&self) -> bool {
        matches!(self.endpoint, Endpoint::Http(_))
    }

    /// Remembers which of its tools a server of the legacy era runs as tasks only. A modern one says so to a call.
    pub(super) fn learn(&self, connection: &Connection, tools: &[Arc<Tool>]) {
        let knows_tasks = connection.revision().era() == Era::Legacy && connection.capabilities.has_tasks();
        let runs_as_task = |tool: &&Arc<Tool>| TaskSupport::of(&tool.definition) == TaskSupport::Required;
        let tasks = tools.iter().filter(|_| knows_tasks).filter(runs_as_task).map(|tool| tool.name.clone());
        *self.tasks.write().unwrap_or_else(PoisonError::into_inner) = tasks.collect();
    }

    /// Whether a call is of such a tool.
    pub(super) fn runs_as_task(&self, target: &Target) -> bool {
        let tasks = self.tasks.read().unwrap_or_else(PoisonError::into_inner);
        matches!(target, Target::Tool(name) if tasks.contains(name))
    }

    /// Opens one more connection, within the time for that. An attempt in the era that was found before and fails is
    /// the last one: it may be another server by now.
    pub(super) async fn open(&self, declared: &Declared) -> Result<Connection, OpenError> {
        let known = self.is_legacy.load(Ordering::Relaxed).then_some(Era::Legacy);
        let open = Connection::find(&self.name, &self.endpoint, &self.options, declared, known);
        let connection = timeout(self.options.connect_time, open).await.unwrap_or(Err(OpenError::TooSlow));
        let is_legacy = connection.as_ref().is_ok_and(|opened| opened.revision().era() == Era::Legacy);
        self.is_legacy.store(is_legacy, Ordering::Relaxed);
        connection
    }
}
