//! The task that refreshes a service's tools from its description.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use toolyard_core::backend::LeftOutItem;
use toolyard_core::{BackendPhase, Catalog, CauseCode, FailureCause, FailureLog, Tool};
use toolyard_openapi::{DescribedOperation, DescriptionError, DescriptionSources, ServiceDescription};

use super::source::{DescriptionFetcher, DescriptionReadError};
use super::{LoadedService, ServiceAccess};
use crate::health::ServiceHealth;

/// First and longest pause after a failure. Each failure doubles the pause.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// Maximum number of faults of a description in the log.
const MAX_LOGGED_FAULTS: usize = 10;

/// The task that fetches the description again and again.
pub(super) struct DescriptionKeeper {
    pub(super) name: Arc<str>,
    pub(super) reader: DescriptionFetcher,
    pub(super) read_options: toolyard_openapi::ReadOptions,
    pub(super) max_tools: usize,
    pub(super) interval: Option<Duration>,
    pub(super) read_time: Duration,
    pub(super) access: Arc<ServiceAccess>,
    /// Servers of the first description.
    pub(super) origins: Option<BTreeSet<String>>,
    pub(super) health: ServiceHealth,
    pub(super) service: watch::Sender<Arc<LoadedService>>,
    /// Requests a refresh.
    pub(super) refresh: Arc<Notify>,
    pub(super) failures: FailureLog,
}

/// The reason why the tools could not be loaded or refreshed.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error("the description cannot be read: {0}")]
    UnreadableDescription(DescriptionReadError),
    #[error("reading the description takes too long")]
    ReadTimeout,
    #[error("the description cannot be used: {0}")]
    InvalidDescription(#[from] DescriptionError),
    #[error(
        "it has {0} operations, but the limit is {1} tools (limits.toolsPerHandler): select operations with `operationFilter` or `filter`"
    )]
    TooManyOperations(usize, usize),
    #[error(
        "it names a new server, {0}, to which no credentials are sent: restart the handler, or set `baseURL`"
    )]
    ServerChanged(String),
    #[error("{}", ServiceDescription::NO_SERVER)]
    NoServer,
}

impl RefreshError {
    fn cause(&self) -> FailureCause {
        let code = match self {
            Self::UnreadableDescription(DescriptionReadError::Request(_, error)) => error.code(),
            Self::UnreadableDescription(DescriptionReadError::Status(_, status)) => {
                CauseCode::of_status(status.as_u16())
            }
            Self::UnreadableDescription(DescriptionReadError::Credentials(_)) => CauseCode::Credentials,
            Self::ReadTimeout => CauseCode::Timeout,
            _ => CauseCode::Description,
        };
        FailureCause::new(code, self.to_string())
    }
}

impl DescriptionKeeper {
    pub(super) async fn run(mut self) {
        let mut pause = BACKOFF.0;
        loop {
            let wait = match self.reload().await {
                Ok(()) => {
                    let repetitions = self.failures.clear();
                    if repetitions > 0 {
                        tracing::info!(handler = %self.name, repetitions, "read the description after repeated failures");
                    }
                    pause = BACKOFF.0;
                    self.interval
                }
                Err(failure) => {
                    self.report_failure(&failure);
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

    /// Reads the description, and publishes it if it has changed.
    async fn reload(&mut self) -> Result<(), RefreshError> {
        let read =
            timeout(self.read_time, self.reader.read()).await.map_err(|_| RefreshError::ReadTimeout)?;
        let read = read.map_err(|error| match error {
            DescriptionReadError::Refused(error) => RefreshError::InvalidDescription(error),
            error => RefreshError::UnreadableDescription(error),
        })?;
        let Some(sources) = read else {
            self.health.publish(|_| {});
            return Ok(());
        };
        let (description, uncallable) = convert(sources, self.read_options.clone())
            .await
            .inspect_err(|error| self.reader.mark_refused(error))?;
        let operations = description.operations.len();
        if operations > self.max_tools {
            return Err(RefreshError::TooManyOperations(operations, self.max_tools));
        }
        if self.access.base_url.is_none() && description.lacks_server() {
            return Err(RefreshError::NoServer);
        }
        self.check_servers(&description)?;
        self.reader.mark_published();
        self.publish(description, uncallable);
        Ok(())
    }

    /// Refuses a description with new servers: the manifest's credentials go only to those of the first description, as
    /// a later one may have another author.
    fn check_servers(&mut self, description: &ServiceDescription) -> Result<(), RefreshError> {
        let own = self.reader.origin();
        let mut origins: BTreeSet<String> = description.origins().collect();
        if self.access.base_url.is_some() {
            origins = description.token_origins().collect();
        }
        origins.extend(own);
        let Some(schemes) = &self.origins else {
            self.origins = Some(origins);
            return Ok(());
        };
        let other = origins.difference(schemes).next().filter(|_| self.access.has_credentials());
        other.map_or(Ok(()), |other| Err(RefreshError::ServerChanged(other.clone())))
    }

    /// Warns of operations and schemes in the manifest that the description does not have.
    fn warn_about_unknown_names(&self, description: &ServiceDescription) {
        for name in &self.read_options.filter.operations {
            if !description.operations.iter().any(|it| it.has_name(name)) {
                tracing::warn!(handler = %self.name, name, "`operationFilter` names an operation that does not exist");
            }
        }
        for name in self.access.credentials.by_scheme.keys() {
            if !description.schemes.contains_key(name) {
                let first_origins: Vec<&str> = description.schemes.keys().map(String::as_str).collect();
                tracing::warn!(handler = %self.name, name, ?first_origins, "`credentials` names a security scheme that does not exist");
            }
        }
    }

    /// Returns the server of the first operation without its query, unless the manifest sets one.
    fn service_url(&self, description: &ServiceDescription) -> Option<Arc<str>> {
        let server = &description.operations.first()?.operation.server;
        let server = server.split(['?', '#']).next().unwrap_or_default();
        let is_absolute = server.contains("://") && self.access.base_url.is_none();
        is_absolute.then(|| server.into())
    }

    fn publish(&self, description: ServiceDescription, uncallable: Vec<LeftOutItem>) {
        self.warn_about_unknown_names(&description);
        let (tools, faults) = (description.operations.len(), description.faults.len());
        tracing::info!(handler = %self.name, tools, faults, "read the description");
        for fault in description.faults.iter().take(MAX_LOGGED_FAULTS) {
            tracing::warn!(handler = %self.name, location = %fault.location, "a fault in the description: {}", fault.problem);
        }
        for LeftOutItem { name, reason } in uncallable.iter().take(MAX_LOGGED_FAULTS) {
            tracing::warn!(handler = %self.name, tool = %name, "left out: {reason}");
        }
        let is_callable = |it: &&DescribedOperation| {
            !uncallable.iter().any(|left_out| *left_out.name == *it.operation.name)
        };
        let tools = description.operations.iter().filter(is_callable);
        let tools = tools.map(|it| Arc::new(tool(it))).collect();
        let protocol = Some(description.format.into());
        let service_url = self.service_url(&description);
        let target = service_url.as_deref().and_then(|url| url.parse().ok());
        // Publish the operations first: every listed tool can be called.
        let service = LoadedService::new(description.operations, description.schemes);
        self.service.send_replace(Arc::new(service));
        let left_out = [uncallable, Vec::new(), Vec::new(), Vec::new()];
        self.health.publish_lists(Catalog { protocol, service_url, tools, left_out, ..Catalog::default() });
        // The server of the description is the one to probe.
        if let Some(target) = target {
            self.health.set_target(&target);
        }
    }

    /// Logs a failure, unless it repeats the last one. Tools of an earlier description stay available.
    fn report_failure(&mut self, failure: &RefreshError) {
        let cause = failure.cause();
        match self.failures.record(&cause) {
            Some(0) => tracing::warn!(handler = %self.name, "{failure}"),
            Some(repetitions) => tracing::warn!(handler = %self.name, repetitions, "{failure}"),
            None => tracing::debug!(handler = %self.name, "again: {failure}"),
        }
        let has_tools = !self.service.borrow().operations.is_empty();
        if !has_tools {
            let phase = BackendPhase::Unavailable { reason: cause };
            self.health.publish(|catalog| catalog.phase = phase);
        }
    }
}

fn tool(described: &DescribedOperation) -> Tool {
    let tool = Tool::named(&described.operation.name, described.definition.clone());
    tool.with_manual(described.manual.as_deref())
}

/// Returns the tools that no arguments satisfy.
fn uncallable(description: &ServiceDescription) -> Vec<LeftOutItem> {
    let left_out = |(name, reason): (&str, String)| LeftOutItem {
        name: name.into(),
        reason: format!("no arguments satisfy its schema: {reason}").into(),
    };
    description.contradictions().map(left_out).collect()
}

/// Reads a description on a blocking thread: the largest ones take seconds.
async fn convert(
    sources: DescriptionSources,
    options: toolyard_openapi::ReadOptions,
) -> Result<(ServiceDescription, Vec<LeftOutItem>), DescriptionError> {
    let read = tokio::task::spawn_blocking(move || {
        let description = toolyard_openapi::read(&sources, &options)?;
        let uncallable = uncallable(&description);
        Ok((description, uncallable))
    })
    .await;
    read.unwrap_or_else(|_| {
        Err(DescriptionError::InvalidDescription {
            file: String::new(),
            problem: "the reader panicked".to_owned(),
        })
    })
}
