//! The task that reads the tools of a server: at the start, at intervals, on request, and when a connection was closed,
//! as a new version of the server may have other tools.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;
use toolyard_backends::health::{RequestEnd, ServiceHealth};
use toolyard_core::output_schema::OutputForm;
use toolyard_core::{BackendPhase, Catalog, CauseCode, FailureCause, FailureLog, LeftOutItem, Tool, file};

use super::DiscoveryOptions;
use super::delivery::SharedDelivery;
use super::details::shortened;
use super::method_call::MethodHandle;
use super::omnia_tools;
use super::reflection::{self, FaultError, ReflectionError};
use super::service_filter;
use super::status::RequestFault;
use crate::descriptor::{DescriptorError, MethodFilter, ServiceTools};
use crate::omnia::{self, ListToolsResponse};

/// First and longest pause after a failure. Each failure doubles the pause.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// Time for which a connection has to last, so that its end is no reason for longer pauses.
const STABLE_TIME: Duration = Duration::from_secs(10);

/// Maximum number of services without descriptors in the log.
const MAX_LOGGED: usize = 10;

/// Maximum number of services and methods without tools that the status names.
const MAX_LEFT_OUT: usize = 500;

/// Maximum length of the name of a service without a descriptor, in characters.
const MAX_NAME_CHARS: usize = 300;

/// The source of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSource {
    /// The server: by reflection, or as a server of the Omnia tool protocol.
    Server,
    /// A file with a `FileDescriptorSet`.
    DescriptorSet(PathBuf),
}

/// A tool that can be called.
#[derive(Clone)]
pub(super) enum CallableTool {
    /// A method.
    Method(MethodHandle),
    /// A tool of the Omnia tool protocol, with the form of its results.
    Omnia(OutputForm),
}

/// The tools of a server by their names.
pub(super) type LoadedTools = HashMap<Arc<str>, CallableTool>;

/// The task that reads the tools again and again.
pub(super) struct ToolsKeeper {
    pub(super) name: Arc<str>,
    pub(super) options: Arc<DiscoveryOptions>,
    pub(super) delivery: SharedDelivery,
    pub(super) health: ServiceHealth,
    pub(super) tools: watch::Sender<Arc<LoadedTools>>,
    /// Requests a refresh.
    pub(super) refresh: Arc<Notify>,
    pub(super) closed: watch::Receiver<u64>,
    pub(super) last: Option<ServerDescription>,
    /// The last description if it cannot be used, with the reason.
    pub(super) rejected: Option<(ServerDescription, UnusableDescription)>,
    pub(super) failures: FailureLog,
}

/// The tools as a server or a file describes them. An equal description is not converted again.
#[derive(Clone, PartialEq)]
pub(super) struct ServerDescription {
    protocol: &'static str,
    /// The served services. `None`: all of the set.
    services: Option<Vec<String>>,
    missing: Vec<(String, String)>,
    file_set: Option<Bytes>,
    listed: Option<ListToolsResponse>,
}

impl ServerDescription {
    /// Returns the reason why there are no tools, if none was left out for a reason of its own.
    fn reason_for_no_tools(&self, filter: &MethodFilter) -> &'static str {
        match (&self.services, &self.listed) {
            _ if !filter.is_empty() => "no method matches `grpcConfig.filter`",
            (None, _) => "`grpcConfig.descriptorSet` has no methods",
            (_, Some(_)) => "the server lists no tools",
            (_, None) => "the server has no services but those of the infrastructure",
        }
    }
}

/// The reason why the tools could not be read.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error("{0}")]
    Request(FaultError),
    #[error("reading the tools takes too long")]
    ReadTimeout,
    #[error("the credentials of the handler cannot be read")]
    Credentials,
    #[error(
        "the server has neither reflection nor the Omnia tool protocol: name its methods in a file, `grpcConfig.descriptorSet`"
    )]
    NoDescription,
    #[error("grpcConfig.descriptorSet: cannot read {0}: {1}")]
    File(String, io::Error),
    #[error("the descriptors cannot be used: {0}")]
    Reflection(ReflectionError),
    #[error(transparent)]
    Description(#[from] UnusableDescription),
}

/// The reason why a description cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum UnusableDescription {
    #[error("the descriptors cannot be used: {0}")]
    Invalid(DescriptorError),
    #[error("the descriptors cannot be used: the reader panicked")]
    Panicked,
    #[error(
        "it has {0} methods, but the limit is {1} tools (limits.toolsPerHandler): select methods with `grpcConfig.filter`"
    )]
    TooManyMethods(usize, usize),
}

impl RefreshError {
    fn cause(&self) -> FailureCause {
        match self {
            Self::Request(FaultError(fault)) => fault.cause(),
            Self::ReadTimeout => FailureCause::new(CauseCode::Timeout, self.to_string()),
            Self::Credentials => FailureCause::new(CauseCode::Credentials, self.to_string()),
            _ => FailureCause::new(CauseCode::Description, self.to_string()),
        }
    }
}

impl ToolsKeeper {
    pub(super) async fn run(mut self) {
        let mut pause = BACKOFF.0;
        let mut last_read = None::<Instant>;
        loop {
            let read = self.reload().await;
            match &read {
                Ok(()) => self.report_success(),
                Err(failure) => self.report_failure(failure),
            }
            let is_read = match &read {
                Ok(()) => true,
                // Only another version of the server has another description. A file can be corrected at any time.
                Err(RefreshError::Description(_)) => self.options.source == ToolSource::Server,
                Err(_) => false,
            };
            if is_read {
                // Pauses grow if the server closes each connection soon after the tools were read.
                if last_read.is_none_or(|at| at.elapsed() > STABLE_TIME + pause) {
                    pause = BACKOFF.0;
                }
                last_read = Some(Instant::now());
                self.wait_for_reason().await;
                sleep(pause).await;
            } else {
                let _early = timeout(pause, self.refresh.notified()).await;
            }
            pause = (pause * 2).min(BACKOFF.1);
        }
    }

    /// Waits until the tools are to be read again.
    async fn wait_for_reason(&mut self) {
        let has_server = self.options.source == ToolSource::Server;
        let interval = self.options.refresh;
        let next = async {
            match interval {
                Some(interval) => sleep(interval).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = next => {}
            () = self.refresh.notified() => {}
            Ok(()) = self.closed.changed(), if has_server => {}
        }
    }

    /// Reads the tools, and publishes them if they have changed.
    async fn reload(&mut self) -> Result<(), RefreshError> {
        // The tools may be those of a server whose connection is closed while they are read or converted.
        self.closed.mark_unchanged();
        let described =
            timeout(self.options.read_time, self.describe()).await.map_err(|_| RefreshError::ReadTimeout)?;
        let described = described?;
        if self.last.as_ref() == Some(&described) {
            self.mark_available();
            return Ok(());
        }
        if let Some((_, fault)) = self.rejected.as_ref().filter(|(rejected, _)| *rejected == described) {
            return Err(fault.clone().into());
        }
        match self.convert(described.clone()).await {
            Ok((tools, left_out)) => {
                self.publish(&described, tools, left_out);
                self.last = Some(described);
                self.rejected = None;
                Ok(())
            }
            Err(fault) => {
                self.rejected = Some((described, fault.clone()));
                Err(fault.into())
            }
        }
    }

    /// Reports the answer of the server. A file is none.
    fn mark_available(&self) {
        if self.options.source == ToolSource::Server {
            self.health.record(self.delivery.channel.origin(), RequestEnd::Answered);
        }
        self.health.publish(|_| {});
    }

    async fn describe(&self) -> Result<ServerDescription, RefreshError> {
        match &self.options.source {
            ToolSource::DescriptorSet(path) => {
                let unreadable = |error| RefreshError::File(path.display().to_string(), error);
                let (file, limit) = (path.clone(), self.options.description_bytes);
                let read = tokio::task::spawn_blocking(move || read_within(&file, limit)).await;
                let bytes = read.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(unreadable)?;
                Ok(ServerDescription {
                    protocol: "gRPC",
                    services: None,
                    missing: Vec::new(),
                    file_set: Some(bytes.into()),
                    listed: None,
                })
            }
            ToolSource::Server => self.ask_server().await,
        }
    }

    /// Asks the server for its services, and for its tools if it speaks the Omnia tool protocol.
    async fn ask_server(&self) -> Result<ServerDescription, RefreshError> {
        let headers = self.delivery.headers(None).await.map_err(|_| RefreshError::Credentials)?;
        let is_wanted = |service: &str| is_wanted(service, &self.options);
        let bytes = self.options.description_bytes;
        let read = reflection::read(&self.delivery.channel, &headers, bytes, is_wanted).await;
        let reflected = match read {
            Ok(reflected) => Some(reflected),
            Err(ReflectionError::Unsupported) => None,
            Err(ReflectionError::Fault(fault)) => return Err(RefreshError::Request(fault)),
            Err(error) => return Err(RefreshError::Reflection(error)),
        };
        let has_tools = reflected.as_ref().is_none_or(|it| {
            self.options.filter.allows_service(omnia::SERVICE)
                && it.services.iter().any(|name| name == omnia::SERVICE)
        });
        let listed = match has_tools {
            true => match omnia_tools::list(&self.delivery, &headers, None).await {
                Ok(listed) => Some(listed),
                Err(RequestFault::Refused(status))
                    if status.code() == Code::Unimplemented && reflected.is_none() =>
                {
                    return Err(RefreshError::NoDescription);
                }
                Err(fault) => return Err(RefreshError::Request(FaultError(fault))),
            },
            false => None,
        };
        let Some(reflected) = reflected else {
            let (services, file_set) = (Some(Vec::new()), None);
            let missing = Vec::new();
            return Ok(ServerDescription { protocol: "Omnia tools v1", services, missing, file_set, listed });
        };
        Ok(ServerDescription {
            protocol: if reflected.version == "v1" {
                "gRPC reflection v1"
            } else {
                "gRPC reflection v1alpha"
            },
            services: Some(reflected.services),
            missing: reflected.missing,
            file_set: Some(reflected.file_set),
            listed,
        })
    }

    /// Converts a description on a blocking thread: the largest ones take a second.
    async fn convert(
        &self,
        described: ServerDescription,
    ) -> Result<(Vec<(Arc<Tool>, CallableTool)>, Vec<LeftOutItem>), UnusableDescription> {
        let options = self.options.clone();
        let work = move || {
            let mut tools = Vec::new();
            let mut left_out = Vec::new();
            for (name, reason) in &described.missing {
                let name = shortened(name, MAX_NAME_CHARS);
                left_out.push(LeftOutItem { name: name.into(), reason: reason.as_str().into() });
            }
            if let Some(set) = described.file_set.as_ref().filter(|set| !set.is_empty()) {
                let services = ServiceTools::from_file_descriptor_set(set, &options.filter)
                    .map_err(UnusableDescription::Invalid)?;
                let services = Arc::new(services);
                for (index, method) in services.methods().iter().enumerate() {
                    let service = service_of(method.path().path());
                    let is_served = described
                        .services
                        .as_ref()
                        .is_none_or(|served| served.iter().any(|it| it == service));
                    // A file can define other services than the one that it was read for.
                    if is_served && is_wanted(service, &options) {
                        let handle = MethodHandle { services: services.clone(), index };
                        tools.push((method.tool().clone(), CallableTool::Method(handle)));
                    }
                }
                left_out.extend(service_filter::left_out(&services));
            }
            let listed = described.listed.as_ref();
            let listed =
                listed.map(|listed| omnia_tools::listed(listed, &options.filter)).unwrap_or_default();
            left_out.extend(listed.left_out);
            for tool in listed.tools {
                let form = tool.output_form();
                tools.push((Arc::new(tool), CallableTool::Omnia(form)));
            }
            if tools.is_empty() && left_out.is_empty() {
                let reason = described.reason_for_no_tools(&options.filter).into();
                left_out.push(LeftOutItem { name: "*".into(), reason });
            }
            match tools.len() {
                count if count > options.max_tools => {
                    Err(UnusableDescription::TooManyMethods(count, options.max_tools))
                }
                _ => Ok((tools, bounded(left_out))),
            }
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| UnusableDescription::Panicked)?
    }

    fn publish(
        &self,
        described: &ServerDescription,
        tools: Vec<(Arc<Tool>, CallableTool)>,
        left_out: Vec<LeftOutItem>,
    ) {
        tracing::info!(handler = %self.name, tools = tools.len(), left_out = left_out.len(), "read the tools");
        for (service, reason) in described.missing.iter().take(MAX_LOGGED) {
            tracing::warn!(handler = %self.name, service, reason, "the server has no descriptor of a service");
        }
        let mut callable = LoadedTools::new();
        let mut published = Vec::new();
        for (tool, runner) in tools {
            if callable.contains_key(&tool.name) {
                tracing::warn!(handler = %self.name, tool = %tool.name, "a duplicate tool is left out");
                continue;
            }
            callable.insert(tool.name.clone(), runner);
            published.push(tool);
        }
        // Publish the runners first: every listed tool can be called.
        self.tools.send_replace(Arc::new(callable));
        let protocol = Some(described.protocol.into());
        if self.options.source == ToolSource::Server {
            self.health.record(self.delivery.channel.origin(), RequestEnd::Answered);
        }
        let left_out = [left_out, Vec::new(), Vec::new(), Vec::new()];
        self.health.publish_lists(Catalog { protocol, tools: published, left_out, ..Catalog::default() });
    }

    /// Ends the repetitions of a failure, and logs their number.
    fn report_success(&mut self) {
        let repetitions = self.failures.clear();
        if repetitions > 0 {
            tracing::info!(handler = %self.name, repetitions, "read the tools after repeated failures");
        }
    }

    /// Logs a failure, unless it repeats the last one. Tools that were read before stay known.
    fn report_failure(&mut self, failure: &RefreshError) {
        let (name, cause) = (&self.name, failure.cause());
        match self.failures.record(&cause) {
            Some(0) => tracing::warn!(handler = %name, "cannot read the tools: {failure}"),
            Some(repetitions) => tracing::warn!(
                handler = %name,
                repetitions,
                "cannot read the tools, for another reason than before: {failure}"
            ),
            None => tracing::debug!(handler = %name, "cannot read the tools again: {failure}"),
        }
        let end = match failure {
            RefreshError::Request(FaultError(fault)) => fault.request_end(),
            _ => None,
        };
        if self.last.is_none() {
            let phase = BackendPhase::Unavailable { reason: cause };
            self.health.publish(|catalog| catalog.phase = phase);
        } else if let Some(end) = end {
            self.health.record(self.delivery.channel.origin(), end);
        }
    }
}

/// True for a service whose methods become tools.
fn is_wanted(service: &str, options: &DiscoveryOptions) -> bool {
    service != omnia::SERVICE && service_filter::is_for_tools(service, options.selects_services)
}

/// Keeps the first items, and counts the others.
fn bounded(mut items: Vec<LeftOutItem>) -> Vec<LeftOutItem> {
    if let Some(others @ 1..) = items.len().checked_sub(MAX_LEFT_OUT) {
        items.truncate(MAX_LEFT_OUT);
        let reason = format!("only {MAX_LEFT_OUT} services and methods are named").into();
        items.push(LeftOutItem { name: format!("{others} others").into(), reason });
    }
    items
}

/// Reads a file of at most `limit` bytes.
fn read_within(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    file::read(path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            io::Error::other(format!("larger than {limit} bytes (limits.responseBytes)"))
        }
        _ => error,
    })
}

/// Returns the service in the path of a method, `/SERVICE/METHOD`.
fn service_of(path: &str) -> &str {
    path.trim_start_matches('/').split('/').next().unwrap_or_default()
}
