//! Keeps the tools as the description has them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use toolyard_core::{Catalog, Phase, Tool};
use toolyard_openapi::{Description, Sources, Unreadable};

use super::source::{NotRead, Reader};
use super::{Service, Shared};

/// The first pause after a failure, and the longest. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// How many faults of a description are logged.
const FAULTS_SHOWN: usize = 10;

/// The task that reads the description, and reads it again.
pub(super) struct Keeper {
    pub(super) name: Arc<str>,
    pub(super) reader: Reader,
    pub(super) reading: toolyard_openapi::Options,
    pub(super) most: usize,
    pub(super) every: Option<Duration>,
    pub(super) read_time: Duration,
    pub(super) shared: Arc<Shared>,
    /// The servers that the first description named.
    pub(super) origins: Option<BTreeSet<String>>,
    pub(super) catalog: watch::Sender<Arc<Catalog>>,
    pub(super) service: watch::Sender<Arc<Service>>,
    /// Somebody wants to know what there is now.
    pub(super) refresh: Arc<Notify>,
}

/// Why there are no tools, or no newer ones.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the description cannot be read: {0}")]
    NotRead(#[from] NotRead),
    #[error("reading the description takes too long")]
    TooSlow,
    #[error("the description cannot be used: {0}")]
    Unreadable(#[from] Unreadable),
    #[error(
        "it has {0} operations, and a handler may have {1} tools (limits.toolsPerHandler): choose with `operationFilter` or `filter`"
    )]
    TooMany(usize, usize),
    #[error(
        "it names another server than before, {0}, which is sent no credentials unasked: restart the handler, or set `baseURL`"
    )]
    Elsewhere(String),
}

impl Keeper {
    pub(super) async fn keep(mut self) {
        let mut pause = BACKOFF.0;
        loop {
            let wait = match self.look().await {
                Ok(()) => {
                    pause = BACKOFF.0;
                    self.every
                }
                Err(failure) => {
                    self.give_up(&failure);
                    let wait = pause;
                    pause = (pause * 2).min(BACKOFF.1);
                    Some(wait)
                }
            };
            match wait {
                Some(wait) => drop(timeout(wait, self.refresh.notified()).await),
                None => self.refresh.notified().await,
            }
        }
    }

    /// Reads the description, and publishes it if it is another one than before.
    async fn look(&mut self) -> Result<(), Failure> {
        let read = timeout(self.read_time, self.reader.read()).await.map_err(|_| Failure::TooSlow)??;
        let Some(sources) = read else {
            self.catalog.send_if_modified(|catalog| {
                let was_away = catalog.phase != Phase::Ready;
                if was_away {
                    *catalog = Arc::new(Catalog { phase: Phase::Ready, ..Catalog::clone(catalog) });
                }
                was_away
            });
            return Ok(());
        };
        let description = convert(sources, self.reading.clone()).await?;
        let operations = description.operations.len();
        if operations > self.most {
            return Err(Failure::TooMany(operations, self.most));
        }
        self.check_servers(&description)?;
        self.reader.keep();
        self.publish(description);
        Ok(())
    }

    /// What the manifest has goes to the servers that the description named first. Later a description may come from
    /// somebody else.
    fn check_servers(&mut self, description: &Description) -> Result<(), Failure> {
        let own = self.reader.origin();
        let mut origins: BTreeSet<String> = description.origins().collect();
        if self.shared.base_url.is_some() {
            origins = description.token_origins().collect();
        }
        origins.extend(own);
        let Some(known) = &self.origins else {
            self.origins = Some(origins);
            return Ok(());
        };
        let other = origins.difference(known).next().filter(|_| self.shared.has_credentials());
        other.map_or(Ok(()), |other| Err(Failure::Elsewhere(other.clone())))
    }

    /// What the manifest names and the description has not is a slip of the pen in one of them.
    fn warn_of_strangers(&self, description: &Description) {
        for name in &self.reading.filter.operations {
            if !description.operations.iter().any(|it| it.is_called(name)) {
                tracing::warn!(handler = %self.name, name, "`operationFilter` names an operation that there is not");
            }
        }
        for name in self.shared.credentials.by_scheme.keys() {
            if !description.schemes.contains_key(name) {
                let known: Vec<&str> = description.schemes.keys().map(String::as_str).collect();
                tracing::warn!(handler = %self.name, name, ?known, "`credentials` names a scheme that there is not");
            }
        }
    }

    fn publish(&self, description: Description) {
        self.warn_of_strangers(&description);
        let (tools, faults) = (description.operations.len(), description.faults.len());
        tracing::info!(handler = %self.name, tools, faults, "the description was read");
        for fault in description.faults.iter().take(FAULTS_SHOWN) {
            tracing::warn!(handler = %self.name, place = %fault.place, "a fault in the description: {}", fault.problem);
        }
        let tools = description.operations.iter();
        let tools =
            tools.map(|it| Arc::new(Tool::named(&it.operation.name, it.definition.clone()))).collect();
        let protocol = Some(description.format.into());
        // Whoever sees a tool can call it.
        let service = Service::of(description.operations, description.schemes);
        self.service.send_replace(Arc::new(service));
        self.catalog.send_replace(Arc::new(Catalog {
            phase: Phase::Ready,
            protocol,
            tools,
            ..Catalog::default()
        }));
    }

    /// What was read before goes on to work.
    fn give_up(&self, failure: &Failure) {
        tracing::warn!(handler = %self.name, "{failure}");
        let has_tools = !self.service.borrow().operations.is_empty();
        if !has_tools {
            let phase = Phase::Unavailable { reason: failure.to_string() };
            self.catalog
                .send_modify(|catalog| *catalog = Arc::new(Catalog { phase, ..Catalog::clone(catalog) }));
        }
    }
}

/// The largest descriptions take a second.
async fn convert(sources: Sources, options: toolyard_openapi::Options) -> Result<Description, Unreadable> {
    let read = tokio::task::spawn_blocking(move || toolyard_openapi::read(&sources, &options)).await;
    read.unwrap_or_else(|_| {
        Err(Unreadable::NoDescription { file: String::new(), problem: "its reader has failed".to_owned() })
    })
}
