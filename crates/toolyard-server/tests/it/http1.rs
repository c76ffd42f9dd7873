//! As much of HTTP/1.1 as raw peers need: heads as text, bodies piece by piece.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The head of a request or of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The first line.
    pub(crate) start: String,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// All of it, without what differs from one time to the next.
    pub(crate) fn text(&self) -> String {
        let headers = self.headers.iter().filter(|(name, _)| name != "date");
        let lines = headers.map(|(name, value)| format!("\n{name}: {value}"));
        self.start.clone() + &lines.collect::<String>()
    }

    /// The second word of a status line.
    pub(crate) fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// How the body of this head ends. `to_end` is said where the head does not say it.
    pub(crate) fn framing(&self, to_end: Framing) -> Framing {
        if self.status() == 204 {
            return Framing::Length(0);
        }
        let chunked = self.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        if chunked { Framing::Chunked } else { length.map_or(to_end, Framing::Length) }
    }
}

/// How a body ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    ToEnd,
}

/// Reads heads and bodies from one direction of a connection.
pub(crate) struct Reader<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Reads on; false at the end of the stream.
    async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(16 * 1024);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    async fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.split_to(end + 2);
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next head; `None` where the connection ends before one is whole.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        let Some(start) = self.line().await? else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            match self.line().await? {
                None => return Ok(None),
                Some(line) if line.is_empty() => return Ok(Some(Head { start, headers })),
                Some(line) => {
                    let (name, value) = line.split_once(':').unwrap_or((&line, ""));
                    headers.push((name.to_owned(), value.trim().to_owned()));
                }
            }
        }
    }

    /// What has come of a body, at least a byte; `None` at its end. An early end of the stream is an error.
    pub(crate) async fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Bytes>> {
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the body is cut");
        match framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                if self.buffer.is_empty() && !self.fill().await? {
                    return Err(cut());
                }
                let piece = self.buffer.split_to(self.buffer.len().min(*left));
                *left -= piece.len();
                Ok(Some(piece.freeze()))
            }
            Framing::ToEnd => {
                let more = !self.buffer.is_empty() || self.fill().await?;
                Ok(more.then(|| self.buffer.split().freeze()))
            }
            Framing::Chunked => {
                let size = self.line().await?.ok_or_else(cut)?;
                let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
                while self.buffer.len() < size + 2 {
                    if !self.fill().await? {
                        return Err(cut());
                    }
                }
                let mut piece = self.buffer.split_to(size + 2);
                piece.truncate(size);
                if size == 0 {
                    *framing = Framing::Length(0);
                }
                Ok((size > 0).then(|| piece.freeze()))
            }
        }
    }

    pub(crate) async fn body(&mut self, mut framing: Framing) -> io::Result<String> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut framing).await? {
            body.extend_from_slice(&piece);
        }
        String::from_utf8(body).map_err(io::Error::other)
    }

    /// Waits until the other side has nothing more to say; what it still says is thrown away.
    pub(crate) async fn end(&mut self) {
        while let Ok(true) = self.fill().await {
            self.buffer.clear();
        }
    }
}
