//! The DevTools protocol on two pipes: messages in JSON, each followed by a zero byte.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::RenderError;

/// Maximum length of a message besides the text of a page, in bytes.
const MESSAGE_BYTES: usize = 1 << 20;

/// Maximum length of a UTF-16 code unit in JSON, as in `\u00e9`.
const ESCAPE_BYTES: usize = 6;

/// Number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection to a browser.
pub(super) struct DevTools {
    input: Box<dyn AsyncWrite + Send + Unpin>,
    output: Box<dyn AsyncRead + Send + Unpin>,
    received: BytesMut,
    /// Number of received bytes that contain no end of a message.
    searched: usize,
    unsent: VecDeque<Bytes>,
    last_id: u64,
    /// Session of the page, once there is one.
    pub(super) session: Option<String>,
    max_message: usize,
}

/// A response or an event.
#[derive(Debug, Deserialize)]
pub(super) struct BrowserMessage {
    /// Number of the command, if it is a response.
    #[serde(default)]
    pub(super) id: Option<u64>,
    /// Name of the event.
    #[serde(default)]
    pub(super) method: String,
    /// The event.
    #[serde(default)]
    pub(super) params: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<CommandError>,
}

#[derive(Debug, Deserialize)]
struct CommandError {
    message: String,
}

impl DevTools {
    /// Returns a connection on these pipes for a page of at most `dom_bytes` UTF-16 code units.
    pub(super) fn new(
        input: Box<dyn AsyncWrite + Send + Unpin>,
        output: Box<dyn AsyncRead + Send + Unpin>,
        dom_bytes: usize,
    ) -> Self {
        Self {
            input,
            output,
            received: BytesMut::new(),
            searched: 0,
            unsent: VecDeque::new(),
            last_id: 0,
            session: None,
            max_message: dom_bytes.saturating_mul(ESCAPE_BYTES).saturating_add(MESSAGE_BYTES),
        }
    }

    /// Queues a command, which [`next`](Self::next) sends, and returns its number.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.unsent.push_back(format!("{command}\0").into());
        self.last_id
    }

    /// Sends a command and returns its result. Events before it are left out.
    pub(super) async fn call(&mut self, method: &str, params: &Value) -> Result<Value, RenderError> {
        let id = self.send(method, params);
        loop {
            let message = self.next().await?;
            if message.id == Some(id) {
                return message.into_result(method);
            }
        }
    }

    /// Sends commands until the next message arrives. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<BrowserMessage, RenderError> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(message);
            }
            let Self { input, output, received, unsent, .. } = self;
            if unsent.front().is_some_and(|command| !command.has_remaining()) {
                unsent.pop_front();
                continue;
            }
            let has_command = !unsent.is_empty();
            received.reserve(READ_BYTES);
            let mut nothing = Bytes::new();
            let command = unsent.front_mut().unwrap_or(&mut nothing);
            tokio::select! {
                written = input.write_buf(command), if has_command => {
                    written.map_err(|_| RenderError::Ended)?;
                }
                read = output.read_buf(received) => {
                    if read.map_err(|_| RenderError::Ended)? == 0 {
                        return Err(RenderError::Ended);
                    }
                }
            }
        }
    }

    fn take_message(&mut self) -> Result<Option<BrowserMessage>, RenderError> {
        let Some(length) = self.received[self.searched..].iter().position(|byte| *byte == 0) else {
            self.searched = self.received.len();
            return match self.received.len() > self.max_message {
                true => Err(RenderError::Protocol("it sent a message that is too long".to_owned())),
                false => Ok(None),
            };
        };
        let message = self.received.split_to(self.searched + length);
        self.received.advance(1);
        self.searched = 0;
        let message = serde_json::from_slice(&message);
        message.map(Some).map_err(|_| RenderError::Protocol("it sent a message that is not valid".to_owned()))
    }
}

impl BrowserMessage {
    fn into_result(self, method: &str) -> Result<Value, RenderError> {
        match self.error {
            Some(error) => {
                let message: String = error.message.chars().take(200).collect();
                Err(RenderError::Protocol(format!("{method}: {}", message.escape_default())))
            }
            None => Ok(self.result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_end_with_a_zero_byte() {
        let (near, mut far) = tokio::io::duplex(16);
        let (output, input) = tokio::io::split(near);
        let mut devtools = DevTools::new(Box::new(input), Box::new(output), 0);
        let browser = async {
            let mut command = vec![0; r#"{"id":1,"method":"A.b","params":{"c":1}}"#.len() + 1];
            far.read_exact(&mut command).await.expect("a command");
            let messages = "{\"method\":\"X.event\",\"params\":{}}\0{\"id\":1,\"result\":{\"d\":2}}\0";
            far.write_all(messages.as_bytes()).await.expect("a reader");
            String::from_utf8(command).expect("UTF-8")
        };
        let params = json!({"c": 1});
        let (command, result) = tokio::join!(browser, devtools.call("A.b", &params));
        assert_eq!(command, "{\"id\":1,\"method\":\"A.b\",\"params\":{\"c\":1}}\0");
        assert_eq!(result.expect("a result"), json!({"d": 2}));
    }

    async fn error_of(sent: &[u8]) -> String {
        let output = std::io::Cursor::new(sent.to_owned());
        let mut devtools = DevTools::new(Box::new(tokio::io::sink()), Box::new(output), 0);
        devtools.call("A.b", &json!({})).await.expect_err("an error").to_string()
    }

    #[tokio::test]
    async fn broken_connections_are_errors() {
        let ended = "The browser ended while it ran the scripts of the page: they need more than it has. Use another source.";
        assert_eq!(error_of(b"").await, ended);
        assert_eq!(error_of(b"{\"id\":1").await, ended);
        let invalid =
            "The browser cannot show the page: it sent a message that is not valid. Use another source.";
        assert_eq!(error_of(b"{\0").await, invalid);
        let long =
            "The browser cannot show the page: it sent a message that is too long. Use another source.";
        assert_eq!(error_of(&vec![b' '; MESSAGE_BYTES + 1]).await, long);
        let refused = br#"{"id":1,"error":{"message":"no such command"}}"#;
        let refused = [&refused[..], b"\0"].concat();
        let expected = "The browser cannot show the page: A.b: no such command. Use another source.";
        assert_eq!(error_of(&refused).await, expected);
    }
}
