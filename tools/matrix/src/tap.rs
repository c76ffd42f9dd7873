//! Taps on the traffic from the gateway to servers that do not report cancellations themselves.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const CANCELLED: &str = "notifications/cancelled";

/// Text before the ID of a session, for HTTP+SSE and streamable HTTP.
const SESSION_MARKERS: [&str; 2] = ["sessionId=", "mcp-session-id: "];

/// A tap between the gateway and a server with a connection per client.
pub(super) enum TrafficTap {
    /// A file per process with its input. The extension is the process ID.
    Files(PathBuf),
    /// Relayed connections.
    Relay { records: TrafficRecords, _relay: JoinSet<()> },
}

/// The traffic of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct TrafficRecord {
    text: String,
    is_over: bool,
}

type TrafficRecords = Arc<Mutex<Vec<TrafficRecord>>>;

impl TrafficTap {
    /// Starts a relay to a server, and returns its address.
    pub(super) async fn relay(server: SocketAddr) -> anyhow::Result<(SocketAddr, Self)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let records = TrafficRecords::default();
        let (shared_records, mut relay) = (records.clone(), JoinSet::new());
        relay.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay_connection(client, server, shared_records.clone()));
            }
        });
        Ok((address, Self::Relay { records, _relay: relay }))
    }

    /// `true` if the server was notified that the call with this text is cancelled: by a message, or by the end of the
    /// client's own connection.
    pub(super) fn is_withdrawn(&self, call: &str) -> bool {
        match self {
            Self::Files(path) => {
                let records = file_records(path);
                records.iter().any(|record| record.text.contains(call) && record.is_cancellation())
            }
            Self::Relay { records, .. } => {
                session_records(&lock(records), call).any(TrafficRecord::is_cancellation)
            }
        }
    }
}

impl TrafficRecord {
    /// Only a stream that is unique to a session ends with it.
    fn is_cancellation(&self) -> bool {
        self.text.contains(CANCELLED) || (self.is_over && !self.text.starts_with("POST"))
    }
}

fn lock(records: &TrafficRecords) -> MutexGuard<'_, Vec<TrafficRecord>> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All connections of the session with this call.
fn session_records<'a>(records: &'a [TrafficRecord], call: &str) -> impl Iterator<Item = &'a TrafficRecord> {
    let session = records.iter().find_map(|record| session_id_before(&record.text, call)).map(str::to_owned);
    let is_of_it = move |record: &&TrafficRecord| session.as_ref().is_some_and(|id| record.text.contains(id));
    records.iter().filter(is_of_it)
}

/// The session ID that is nearest before the call.
fn session_id_before<'a>(text: &'a str, call: &str) -> Option<&'a str> {
    let before = &text[..text.find(call)?];
    let start = SESSION_MARKERS.iter().filter_map(|mark| Some(before.rfind(mark)? + mark.len())).max()?;
    before[start..].split(|letter: char| letter.is_whitespace() || letter == '&').next()
}

/// The input of each process that has a file beside this path.
fn file_records(path: &Path) -> Vec<TrafficRecord> {
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let ours =
        entries.flatten().map(|entry| entry.path()).filter(|file| file.file_stem() == path.file_name());
    let record = |file: PathBuf| {
        let process = file.extension()?.to_str()?.to_owned();
        let text = std::fs::read_to_string(&file).ok()?;
        Some(TrafficRecord { text, is_over: !Path::new("/proc").join(process).exists() })
    };
    ours.filter_map(record).collect()
}

async fn relay_connection(client: TcpStream, server: SocketAddr, records: TrafficRecords) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Without this option small messages wait for acknowledgements.
    let _slow = (client.set_nodelay(true), server.set_nodelay(true));
    let number = {
        let mut records = lock(&records);
        records.push(TrafficRecord::default());
        records.len() - 1
    };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        () = copy_and_record(from_client, to_server, &records, number) => {}
        () = copy_and_record(from_server, to_client, &records, number) => {}
    }
    lock(&records)[number].is_over = true;
}

/// Relays and records one direction.
async fn copy_and_record(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    records: &TrafficRecords,
    number: usize,
) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        lock(records)[number].text += &String::from_utf8_lossy(&piece[..length]);
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_counts_for_its_own_session() {
        let record = |text: &str, is_over| TrafficRecord { text: text.to_owned(), is_over };
        let withdrawn = |records: &[TrafficRecord]| {
            session_records(records, "the-mark").any(TrafficRecord::is_cancellation)
        };
        let call = record("POST /message?sessionId=one&x HTTP/1.1\r\n\r\n{the-mark}", true);
        let stream = |is_over| record("GET /sse HTTP/1.1\r\n\r\ndata: /message?sessionId=one\n\n", is_over);
        assert!(!withdrawn(&[call.clone(), stream(false)]));
        assert!(withdrawn(&[call.clone(), stream(true)]));
        let words = |session| record(&format!("POST\r\nmcp-session-id: {session}\r\n\r\n{CANCELLED}"), false);
        assert!(withdrawn(&[call.clone(), words("one")]));
        assert!(!withdrawn(&[call, words("other")]));
    }
}
