//! A server with scripted answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Reaction to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Sends a response and keeps the connection open for the next request.
    Text(String),
    /// Sends a response and closes the connection.
    Last(String),
    /// Sends the beginning of a response, then nothing.
    Stall(String),
    /// Sends nothing and keeps the connection open.
    Silence,
    /// Resets the connection.
    Reset,
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A server with one answer for each request, in order of arrival over all connections.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    hung_up: Arc<Notify>,
    serving: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let hung_up = Arc::new(Notify::new());
        let (seen, answers, gone) = (requests.clone(), answers.to_vec(), hung_up.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(connection(stream, seen.clone(), answers.clone(), gone.clone()));
            }
        });
        Self { address, requests, hung_up, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the requests so far, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client closes its connection without a response.
    pub(crate) async fn hung_up(&self) {
        self.hung_up.notified().await;
    }

    pub(crate) async fn stop(mut self) {
        self.serving.shutdown().await;
    }
}

async fn connection(
    mut stream: TcpStream,
    requests: Arc<Mutex<Vec<String>>>,
    answers: Vec<Answer>,
    hung_up: Arc<Notify>,
) {
    while let Some(request) = read(&mut stream).await {
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        match answers.get(number).cloned() {
            Some(Answer::Text(text)) => drop(stream.write_all(text.as_bytes()).await),
            Some(Answer::Last(text)) => return drop(stream.write_all(text.as_bytes()).await),
            Some(Answer::Stall(text)) => {
                let _written = stream.write_all(text.as_bytes()).await;
                return std::future::pending().await;
            }
            Some(Answer::Silence) => {
                let _nothing = stream.read(&mut [0]).await;
                return hung_up.notify_one();
            }
            Some(Answer::Reset) => return drop(stream.set_zero_linger()),
            None => return,
        }
    }
}

/// Reads the next request: head, and body of the announced length.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => text.extend_from_slice(&buffer[..count]),
            Ok(0) | Err(_) => return None,
        }
        let request = String::from_utf8(text.clone()).ok()?;
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let announced = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= announced.map_or(0, |length| length.parse().unwrap()) {
            return Some(request);
        }
    }
}
