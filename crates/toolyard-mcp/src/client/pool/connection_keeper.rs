//! Keeps the shared connection to a server open.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use toolyard_core::{BackendPhase, Catalog, FailureCause, FailureLog};

use super::connector::UpstreamConnector;
use super::usage::ServerUsage;
use crate::client::catalog::expiry::ListExpiry;
use crate::client::catalog::list_invalidation::ListSet;
use crate::client::catalog::published::CatalogPublisher;
use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::connection::liveness;
use crate::client::connection::state::{ConnectionState, DownReason};
use crate::client::connection::{ConnectError, UpstreamConnection};
use crate::client::transport::function::FunctionGeneration;

/// The pause after the first failure, which doubles with each further failure, and its maximum.
const RECONNECT_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// A connection is stable if it lasted this many times the pause before it, or the maximum pause. After a stable
/// connection the pause starts anew; a server that connects and ends again and again counts as failing.
const STABLE_FACTOR: u32 = 10;

/// Time to wait for further changes before a list is fetched again.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(200);

/// The task that connects, lists, and reconnects when the connection is lost.
pub(in crate::client) struct ConnectionKeeper {
    pub(in crate::client) connector: Arc<UpstreamConnector>,
    /// The capabilities that a legacy server is told.
    pub(in crate::client) declared: DeclaredCapabilities,
    pub(in crate::client) catalog: Arc<CatalogPublisher>,
    pub(in crate::client) state: watch::Sender<ConnectionState>,
    /// The use of the server, if it is stopped when idle.
    pub(in crate::client) usage: Option<Arc<ServerUsage>>,
    /// Notified when the lists are to be fetched again.
    pub(in crate::client) refresh: Arc<Notify>,
    /// The generation of a hosted function.
    pub(in crate::client) generation: FunctionGeneration,
    /// The last failure, for the log.
    pub(in crate::client) failures: FailureLog,
}

/// The reason why a connection is given up.
enum LeaveReason {
    /// The connection is lost.
    Lost,
    /// The server is not used.
    Idle,
    /// The connection works, but the function behind it was replaced.
    Renewed,
}

impl ConnectionKeeper {
    pub(in crate::client) async fn run(mut self) {
        let mut pause = RECONNECT_PAUSE.0;
        loop {
            self.generation.mark_seen();
            let lines_before = self.connector.options.error_lines.count();
            match self.connect().await {
                Ok(connection) => {
                    let since = Instant::now();
                    let reason = tokio::select! {
                        reason = self.maintain(&connection) => reason,
                        never = connection.keep_subscribed() => match never {},
                    };
                    match reason {
                        // Calls use this connection until there is the next one.
                        LeaveReason::Renewed => {
                            pause = RECONNECT_PAUSE.0;
                            continue;
                        }
                        LeaveReason::Idle => {
                            connection.end_process().await;
                            self.wait_for_call().await;
                            self.state.send_replace(ConnectionState::Connecting);
                            continue;
                        }
                        LeaveReason::Lost => {
                            pause = match connection.is_session_lost() {
                                // The server works, and only wants a new session.
                                true => RECONNECT_PAUSE.0,
                                false => pause_after(since.elapsed(), pause),
                            };
                            if !connection.is_session_lost() {
                                self.connector.eras.reset();
                            }
                            self.handle_loss(pause, &connection);
                            connection.end_process().await;
                        }
                    }
                }
                Err(error) => self.handle_connect_error(&error, lines_before),
            }
            // A refresh, or a replaced function, starts the next attempt at once.
            let early = async {
                tokio::select! {
                    () = self.refresh.notified() => {}
                    () = self.generation.wait_for_change() => sleep(DEBOUNCE).await,
                }
            };
            let _early = timeout(pause, early).await;
            pause = (pause * 2).min(RECONNECT_PAUSE.1);
        }
    }

    async fn connect(&mut self) -> Result<Arc<UpstreamConnection>, ConnectError> {
        let limit = self.connector.connect_timeout();
        let attempt = async {
            timeout(limit, self.connect_and_list()).await.unwrap_or(Err(ConnectError::Timeout(limit)))
        };
        let connected = match &self.connector.options.launcher {
            Some(launcher) => launcher.start(attempt).await,
            None => attempt.await,
        };
        self.connector.record_attempt(connected.as_ref().err());
        let (connection, catalog) = connected?;
        let connection = Arc::new(connection);
        let (revision, tools) = (connection.revision(), catalog.tools.len());
        let options = &self.connector.options;
        options.error_lines.set_quiet(false);
        match self.failures.clear() {
            0 => tracing::info!(handler = %self.connector.name, %revision, tools, "connected"),
            repetitions => {
                tracing::info!(handler = %self.connector.name, %revision, tools, repetitions, "connected after repeated failures");
            }
        }
        self.state.send_replace(ConnectionState::Up(connection.clone()));
        self.publish(&connection, catalog);
        Ok(connection)
    }

    /// Connects and fetches all lists: a server that cannot list its tools counts as not connected.
    async fn connect_and_list(&self) -> Result<(UpstreamConnection, Catalog), ConnectError> {
        let connection = self.connector.connect(&self.declared, None).await?;
        connection.server_requests.refuse_all(&connection.transport);
        let protocol = Some(format!("MCP {}", connection.revision()).into());
        let unlisted = connection.capabilities.has_resources();
        let before = Catalog::clone(&self.catalog.current());
        // Another version that is published meanwhile is another generation.
        let version = self.connector.endpoint.function_version();
        let mut catalog = Catalog { phase: BackendPhase::Ready, protocol, version, unlisted, ..before };
        connection.refresh_lists(ListSet::ALL, &mut catalog).await?;
        Ok((connection, catalog))
    }

    /// Keeps the lists up to date until the connection is lost or not needed any more.
    async fn maintain(&self, connection: &Arc<UpstreamConnection>) -> LeaveReason {
        let since = Instant::now();
        let (mut expiry, mut generation) = (ListExpiry::default(), self.generation.clone());
        expiry.renew(ListSet::ALL, &connection.capabilities, &self.catalog.current().hints);
        loop {
            tokio::select! {
                () = connection.wait_until_lost() => return LeaveReason::Lost,
                () = connection.list_invalidation().wait() => sleep(DEBOUNCE).await,
                expired = expiry.wait_until_due() => connection.list_invalidation().invalidate(expired),
                () = generation.wait_for_change() => {
                    sleep(DEBOUNCE).await;
                    return LeaveReason::Renewed;
                }
                () = self.refresh.notified() => match generation.may_change() {
                    true => return LeaveReason::Renewed,
                    false => connection.list_invalidation().invalidate(ListSet::ALL),
                },
                () = liveness::wait_until_unresponsive(connection, self.connector.options.probe) => {
                    tracing::warn!(handler = %self.connector.name, "the server does not respond");
                    return LeaveReason::Lost;
                }
                () = self.wait_until_idle(connection, since) => return LeaveReason::Idle,
            }
            let mut catalog = Catalog::clone(&self.catalog.current());
            let lists = connection.list_invalidation().take();
            let list = connection.refresh_lists(lists, &mut catalog);
            match timeout(self.connector.options.connect_timeout, list).await {
                Ok(Ok(())) => {
                    expiry.renew(lists, &connection.capabilities, &catalog.hints);
                    self.publish(connection, catalog);
                }
                Ok(Err(error)) => {
                    let reason = error.cause(&self.connector.options.secrets);
                    tracing::warn!(handler = %self.connector.name, %reason, "failed to refresh the lists");
                    return LeaveReason::Lost;
                }
                Err(_) => return LeaveReason::Lost,
            }
        }
    }

    /// Publishes the catalog if it has changed.
    fn publish(&self, connection: &UpstreamConnection, catalog: Catalog) {
        self.connector.record_tasks(connection, &catalog.tools);
        self.catalog.publish(catalog);
    }

    /// Waits until a server process was idle for long enough. Calls that come now wait for the next connection.
    async fn wait_until_idle(&self, connection: &Arc<UpstreamConnection>, connected: Instant) {
        let (Some(time), Some(usage)) = (self.connector.options.idle_timeout, &self.usage) else {
            return std::future::pending().await;
        };
        loop {
            sleep_until(usage.last_used().max(connected) + time).await;
            if usage.last_used().max(connected).elapsed() < time {
                continue;
            }
            self.state.send_replace(ConnectionState::Asleep);
            // A call registers its use before it looks for the connection: one that is not seen here sees the new
            // state.
            if !usage.is_running() {
                tracing::info!(handler = %self.connector.name, "stopping the idle process until the next call");
                return;
            }
            self.state.send_replace(ConnectionState::Up(connection.clone()));
        }
    }

    /// Waits for the next use of the server.
    async fn wait_for_call(&self) {
        if let Some(usage) = &self.usage {
            usage.wait_until_used().await;
        }
    }

    /// Handles a lost connection. The tools stay listed, and calls wait during the first short pause.
    fn handle_loss(&mut self, pause: Duration, connection: &UpstreamConnection) {
        match pause == RECONNECT_PAUSE.0 {
            true => {
                let reason = connection.end_reason().reason;
                tracing::warn!(handler = %self.connector.name, %reason, "connection lost");
                self.state.send_replace(ConnectionState::Connecting);
            }
            false => {
                let reason = connection.end_reason();
                self.log_failure(&reason.cause);
                self.mark_down(&reason);
            }
        }
    }

    /// Handles a failed attempt. `lines_before` is the number of lines that the program had written before it.
    fn handle_connect_error(&mut self, error: &ConnectError, lines_before: u64) {
        let options = &self.connector.options;
        let mut reason = DownReason::of(error, &options.secrets);
        if reason.cause.output.is_empty() {
            // A program that still runs may have said why it does not answer.
            let output = options.error_lines.since(lines_before);
            let cause = FailureCause::clone(&reason.cause).with_output(&output).hiding(&options.secrets);
            reason.cause = cause.into();
        }
        self.log_failure(&reason.cause);
        self.mark_down(&reason);
    }

    /// Logs a failure, unless it repeats the last one. The output of a program that fails again is not logged.
    fn log_failure(&mut self, cause: &FailureCause) {
        let name = &self.connector.name;
        match self.failures.record(cause) {
            Some(0) => {
                tracing::warn!(handler = %name, code = cause.code.row().wire, reason = %cause, "failed to connect")
            }
            Some(repetitions) => tracing::warn!(
                handler = %name,
                code = cause.code.row().wire,
                reason = %cause,
                repetitions,
                "failed to connect, for another reason than before"
            ),
            None => tracing::debug!(handler = %name, reason = %cause, "failed to connect again"),
        }
        self.connector.options.error_lines.set_quiet(self.failures.is_failing());
    }

    /// Marks the server as unavailable: its tools stay listed, and calls fail. A hosted function, which needs no
    /// connection, stays callable.
    fn mark_down(&self, reason: &DownReason) {
        self.state.send_if_modified(|state| {
            let stays_up = self.generation.may_change() && state.connection().is_some();
            if !stays_up {
                *state = ConnectionState::Down(reason.clone());
            }
            !stays_up
        });
        let phase = BackendPhase::Unavailable { reason: FailureCause::clone(&reason.cause) };
        self.catalog.publish_phase(phase, None);
    }
}

/// Returns the pause after a connection with this lifetime; `pause` is the pause before it.
fn pause_after(lifetime: Duration, pause: Duration) -> Duration {
    if lifetime >= (pause * STABLE_FACTOR).min(RECONNECT_PAUSE.1) { RECONNECT_PAUSE.0 } else { pause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_connection_is_restored_at_once() {
        let cases = [
            (0, 250, 250),
            (2_400, 500, 500),
            (5_000, 500, 250),
            (29_000, 8_000, 8_000),
            (30_000, 8_000, 250),
            (30_000, 30_000, 250),
        ];
        for (lasted, pause, then) in cases {
            let [lasted, pause, then] = [lasted, pause, then].map(Duration::from_millis);
            assert_eq!(pause_after(lasted, pause), then, "{lasted:?} {pause:?}");
        }
    }
}
