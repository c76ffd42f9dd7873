//! What the gateway says to a server that does not tell what it was told.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const CANCELLED: &str = "notifications/cancelled";

/// What stands before the id of a session, in the order of the transports: HTTP+SSE, streamable HTTP.
const SESSIONS: [&str; 2] = ["sessionId=", "mcp-session-id: "];

/// A place between the gateway and a server, of which every client has a connection of its own.
pub(super) enum Tap {
    /// A file for each process, with all that it was told. Its extension is the process's id.
    Files(PathBuf),
    /// Connections that are passed on.
    Relay { records: Records, _relay: JoinSet<()> },
}

/// What went over one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    text: String,
    is_over: bool,
}

type Records = Arc<Mutex<Vec<Record>>>;

impl Tap {
    /// Passes on what comes for a server, and says where that is to go.
    pub(super) async fn relay(server: SocketAddr) -> anyhow::Result<(SocketAddr, Self)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let records = Records::default();
        let (kept, mut relay) = (records.clone(), JoinSet::new());
        relay.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass(client, server, kept.clone()));
            }
        });
        Ok((address, Self::Relay { records, _relay: relay }))
    }

    /// Whether the server was told that the call is withdrawn which has this text in it: in words, or by the end of
    /// the connection that was its client's alone.
    pub(super) fn withdrawn(&self, call: &str) -> bool {
        match self {
            Self::Files(path) => {
                let records = files(path);
                records.iter().any(|record| record.text.contains(call) && record.says_so())
            }
            Self::Relay { records, .. } => of_session(&lock(records), call).any(Record::says_so),
        }
    }
}

impl Record {
    /// Only what a session has one of ends with it.
    fn says_so(&self) -> bool {
        self.text.contains(CANCELLED) || (self.is_over && !self.text.starts_with("POST"))
    }
}

fn lock(records: &Records) -> MutexGuard<'_, Vec<Record>> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All connections of the session in which there is such a call.
fn of_session<'a>(records: &'a [Record], call: &str) -> impl Iterator<Item = &'a Record> {
    let session = records.iter().find_map(|record| session_of(&record.text, call)).map(str::to_owned);
    let is_of_it = move |record: &&Record| session.as_ref().is_some_and(|id| record.text.contains(id));
    records.iter().filter(is_of_it)
}

/// The id that stands before the call, and nearest to it.
fn session_of<'a>(text: &'a str, call: &str) -> Option<&'a str> {
    let before = &text[..text.find(call)?];
    let start = SESSIONS.iter().filter_map(|mark| Some(before.rfind(mark)? + mark.len())).max()?;
    before[start..].split(|letter: char| letter.is_whitespace() || letter == '&').next()
}

/// What each process was told that has a file beside this path.
fn files(path: &Path) -> Vec<Record> {
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let ours =
        entries.flatten().map(|entry| entry.path()).filter(|file| file.file_stem() == path.file_name());
    let record = |file: PathBuf| {
        let process = file.extension()?.to_str()?.to_owned();
        let text = std::fs::read_to_string(&file).ok()?;
        Some(Record { text, is_over: !Path::new("/proc").join(process).exists() })
    };
    ours.filter_map(record).collect()
}

async fn pass(client: TcpStream, server: SocketAddr, records: Records) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Who does not get that waits for acknowledgements.
    let _slow = (client.set_nodelay(true), server.set_nodelay(true));
    let number = {
        let mut records = lock(&records);
        records.push(Record::default());
        records.len() - 1
    };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        () = copy(from_client, to_server, &records, number) => {}
        () = copy(from_server, to_client, &records, number) => {}
    }
    lock(&records)[number].is_over = true;
}

/// Passes on what one side says, and keeps it.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, records: &Records, number: usize) {
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
    fn a_call_is_withdrawn_in_its_own_session() {
        let record = |text: &str, is_over| Record { text: text.to_owned(), is_over };
        let withdrawn = |records: &[Record]| of_session(records, "the-mark").any(Record::says_so);
        let call = record("POST /message?sessionId=one&x HTTP/1.1\r\n\r\n{the-mark}", true);
        let stream = |is_over| record("GET /sse HTTP/1.1\r\n\r\ndata: /message?sessionId=one\n\n", is_over);
        assert!(!withdrawn(&[call.clone(), stream(false)]));
        assert!(withdrawn(&[call.clone(), stream(true)]));
        let words = |session| record(&format!("POST\r\nmcp-session-id: {session}\r\n\r\n{CANCELLED}"), false);
        assert!(withdrawn(&[call.clone(), words("one")]));
        assert!(!withdrawn(&[call, words("other")]));
    }
}
