//! The listening sockets and their TLS certificate.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use toolyard_manifest::{ListenAddress, ListenerTls, ProcessSettings};
use toolyard_net::listener::{self, ListenerLimits, SocketListener, TlsError, TlsFiles, TlsSettings};
use toolyard_net::workers::WorkerPool;

use crate::context::GatewayContext;
use crate::file_watcher::FileWatcher;
use crate::frontends;
use crate::health::HEALTH_PATHS;
use crate::routes::GatewayRoutes;
use crate::shutdown::Subsystem;
use crate::start::StartError;
use crate::status::LastEdit;

/// The bound sockets of a gateway, before it serves.
pub(crate) struct BoundListeners {
    http: BoundSockets,
    console: BoundSockets,
    grpc: BoundSockets,
    /// `None` without TLS.
    pub(crate) certificate: Option<Arc<ServerCertificate>>,
    /// Watches the files of the certificate.
    renewal: FileWatcher,
}

/// The bound sockets of a protocol.
#[derive(Default)]
struct BoundSockets {
    listeners: Vec<SocketListener>,
    /// The bound addresses, with the ports that the system chose.
    listening: Vec<ListenAddress>,
}

/// The addresses of a gateway by protocol, with the ports that the system chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListeningAddresses {
    /// MCP and REST.
    pub(crate) http: Vec<ListenAddress>,
    /// The same, with the console, if it has addresses of its own.
    pub(crate) console: Vec<ListenAddress>,
    pub(crate) grpc: Vec<ListenAddress>,
}

impl ListeningAddresses {
    /// All addresses of HTTP/1.1.
    pub(crate) fn http1(&self) -> impl Iterator<Item = &ListenAddress> {
        self.http.iter().chain(&self.console)
    }
}

/// The routes of a gateway by protocol.
pub(crate) struct ProtocolRoutes {
    /// MCP and REST, and the console if it has no addresses of its own.
    pub(crate) http: GatewayRoutes,
    /// The same, with the console in any case.
    pub(crate) console: GatewayRoutes,
    pub(crate) grpc: Router,
}

/// The sockets of a gateway that serves.
pub(crate) struct ServingListeners {
    serving: JoinSet<()>,
    /// The task that follows the files of the certificate.
    _renewal: JoinSet<()>,
}

impl BoundListeners {
    /// Binds every address of the manifest.
    ///
    /// # Errors
    /// If an address cannot be bound or the certificate cannot be used.
    pub(crate) async fn bind(process: &ProcessSettings) -> Result<Self, StartError> {
        let files = process.tls.clone().map(|ListenerTls { certificate, key, client_authority }| TlsFiles {
            certificate,
            key,
            client_authority,
        });
        let renewal = FileWatcher::of(files.iter().flat_map(TlsFiles::paths).collect()).await;
        let certificate = match files {
            Some(files) => {
                Some(Arc::new(ServerCertificate::read(files).await.map_err(StartError::Certificate)?))
            }
            None => None,
        };
        let http = BoundSockets::bind(&process.listen, process, certificate.as_deref()).await?;
        let console = match process.console.enabled {
            true => BoundSockets::bind(&process.console.listen, process, certificate.as_deref()).await?,
            false => BoundSockets::default(),
        };
        let grpc = BoundSockets::bind(&process.grpc.listen, process, certificate.as_deref()).await?;
        Ok(Self { http, console, grpc, certificate, renewal })
    }

    /// Returns the bound addresses.
    pub(crate) fn listening(&self) -> ListeningAddresses {
        let Self { http, console, grpc, .. } = self;
        let [http, console, grpc] = [http, console, grpc].map(|sockets| sockets.listening.clone());
        ListeningAddresses { http, console, grpc }
    }

    /// Serves the routes, and follows the files of the certificate.
    ///
    /// # Errors
    /// If the threads that serve connections cannot be started.
    pub(crate) fn serve(
        self,
        context: &GatewayContext,
        routes: ProtocolRoutes,
    ) -> Result<ServingListeners, StartError> {
        let Self { http, console, grpc, certificate, renewal: files } = self;
        let process = &context.process;
        let mut serving = JoinSet::new();
        if [&http, &console, &grpc].iter().any(|sockets| !sockets.listeners.is_empty()) {
            let workers = WorkerPool::start(process.limits.workers).map_err(StartError::Workers)?;
            let (limits, stopping) = (limits(process), context.stopping.clone());
            serving.spawn(async move {
                let stop = stopped(stopping.subscribe());
                let http = listener::serve(http.listeners, routes.http, limits, &workers, stop);
                let stop = stopped(stopping.subscribe());
                let console = listener::serve(console.listeners, routes.console, limits, &workers, stop);
                let http = async { tokio::join!(http, console) };
                let http = async {
                    let stop = stopped(stopping.subscribe());
                    let grpc = frontends::grpc::serve(grpc.listeners, routes.grpc, limits, &workers, stop);
                    tokio::join!(http, grpc);
                };
                http.await;
            });
        }
        let mut renewal = JoinSet::new();
        if let Some(certificate) = certificate {
            let (every, last_edit) = (process.timeouts.manifest_check, context.last_edit.clone());
            renewal.spawn(certificate.follow(files, every, last_edit));
        }
        Ok(ServingListeners { serving, _renewal: renewal })
    }
}

impl BoundSockets {
    async fn bind(
        addresses: &[ListenAddress],
        process: &ProcessSettings,
        certificate: Option<&ServerCertificate>,
    ) -> Result<Self, StartError> {
        let mut sockets = Self::default();
        for address in addresses {
            let outcome = sockets.listen(address, process, certificate).await;
            outcome.map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => StartError::InUse(address.clone()),
                _ => StartError::Listen(address.clone(), error),
            })?;
        }
        Ok(sockets)
    }

    async fn listen(
        &mut self,
        address: &ListenAddress,
        process: &ProcessSettings,
        certificate: Option<&ServerCertificate>,
    ) -> std::io::Result<()> {
        let listener = match address {
            ListenAddress::Unix(path) => SocketListener::unix(path).await?,
            ListenAddress::Tcp(address) => {
                SocketListener::from(TcpListener::bind(address).await?).with_proxies(&process.proxy_protocol)
            }
        };
        let bound = listener.tcp_address()?;
        self.listening.push(bound.map_or_else(|| address.clone(), ListenAddress::Tcp));
        self.listeners.push(match certificate {
            Some(certificate) => listener.with_tls(certificate.current.subscribe()),
            None => listener,
        });
        Ok(())
    }
}

impl Subsystem for ServingListeners {
    /// Waits for the open connections. They end by themselves when the gateway stops.
    fn stop(mut self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { while self.serving.join_next().await.is_some() {} })
    }
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // A dropped sender also means stop.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

/// Returns the connection limit. A quarter of the open-file limit is reserved for upstreams, the store and programs.
fn connections(process: &ProcessSettings) -> usize {
    let configured = process.limits.connections;
    let possible = toolyard_process::file_limit().map_or(configured, |files| files / 4 * 3);
    if possible < configured {
        tracing::warn!(
            "at most {possible} of `limits.connections` ({configured}) can be open: raise the system's limit of open files"
        );
    }
    possible.clamp(1, configured)
}

fn limits(process: &ProcessSettings) -> ListenerLimits {
    ListenerLimits {
        connections: connections(process),
        connections_per_address: process.limits.connections_per_address,
        health_paths: &HEALTH_PATHS,
        head_bytes: process.limits.header_bytes,
        head_time: process.timeouts.request_head,
        write_time: process.timeouts.response_write,
        drain_time: process.timeouts.drain,
    }
}

/// The current certificate and its files.
pub(crate) struct ServerCertificate {
    files: TlsFiles,
    current: watch::Sender<TlsSettings>,
}

impl ServerCertificate {
    async fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let current = watch::Sender::new(read(files.clone()).await?);
        Ok(Self { files, current })
    }

    /// Reloads the certificate when its files change, checking them at the interval `every`.
    async fn follow(
        self: Arc<Self>,
        mut renewal: FileWatcher,
        every: Duration,
        last_edit: watch::Sender<Option<LastEdit>>,
    ) {
        loop {
            renewal.next(every).await;
            let files = self.files.clone();
            let tls = renewal.read(move || TlsSettings::read(&files)).await;
            self.replace(tls, &last_edit);
        }
    }

    /// Reloads the certificate for new connections. An unusable one is refused, and the current one stays.
    pub(crate) async fn reload(&self, last_edit: &watch::Sender<Option<LastEdit>>) {
        let tls = read(self.files.clone()).await;
        self.replace(tls, last_edit);
    }

    fn replace(&self, tls: Result<TlsSettings, TlsError>, last_edit: &watch::Sender<Option<LastEdit>>) {
        let outcome = match tls {
            Ok(tls) => {
                self.current.send_replace(tls);
                tracing::info!("reloaded the certificate");
                LastEdit::now(true, "reloaded the certificate".to_owned())
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
                let reason = format!("{error}{}", cause.unwrap_or_default());
                tracing::error!("the new certificate is refused; the current one stays: {reason}");
                LastEdit::now(false, reason)
            }
        };
        last_edit.send_replace(Some(outcome));
    }
}

/// Reads the files on a blocking thread.
async fn read(files: TlsFiles) -> Result<TlsSettings, TlsError> {
    match spawn_blocking(move || TlsSettings::read(&files)).await {
        Ok(read) => read,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
