//! A minimal HTTP/1.1 reader for raw peers: heads as text, bodies piece by piece.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The head of a request or of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHead {
    /// The first line.
    pub start: String,
    headers: Vec<(String, String)>,
}

impl HttpHead {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let entry = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        entry.map(|(_, value)| value.as_str())
    }

    /// Returns the head without the headers that differ between runs.
    pub fn text(&self) -> String {
        let headers = self.headers.iter().filter(|(name, _)| name != "date");
        let lines = headers.map(|(name, value)| format!("\n{name}: {value}"));
        self.start.clone() + &lines.collect::<String>()
    }

    /// Returns the status code of a response.
    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// Returns the framing of the body after this head; `to_end` if no header specifies it.
    pub fn framing(&self, to_end: BodyFraming) -> BodyFraming {
        if self.status() == 204 {
            return BodyFraming::Length(0);
        }
        let chunked = self.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        if chunked { BodyFraming::Chunked } else { length.map_or(to_end, BodyFraming::Length) }
    }
}

/// The framing of a body.
#[derive(Debug, Clone, Copy)]
pub enum BodyFraming {
    /// As many bytes as `Content-Length` says.
    Length(usize),
    /// Chunks.
    Chunked,
    /// Everything up to the end of the connection.
    ToEnd,
}

/// Reads heads and bodies from one direction of a connection.
pub struct Http1Reader<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Http1Reader<R> {
    /// Creates a reader of one direction.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Reads more bytes; false at the end of the stream.
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

    /// Reads the next head; `None` if the connection ends before a complete one.
    pub async fn head(&mut self) -> io::Result<Option<HttpHead>> {
        let Some(start) = self.line().await? else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            match self.line().await? {
                None => return Ok(None),
                Some(line) if line.is_empty() => return Ok(Some(HttpHead { start, headers })),
                Some(line) => {
                    let (name, value) = line.split_once(':').unwrap_or((&line, ""));
                    headers.push((name.to_owned(), value.trim().to_owned()));
                }
            }
        }
    }

    /// Reads the next piece of a body, at least one byte; `None` at its end. A premature end of the stream is an error.
    pub async fn piece(&mut self, framing: &mut BodyFraming) -> io::Result<Option<Bytes>> {
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the body is cut");
        match framing {
            BodyFraming::Length(0) => Ok(None),
            BodyFraming::Length(left) => {
                if self.buffer.is_empty() && !self.fill().await? {
                    return Err(cut());
                }
                let piece = self.buffer.split_to(self.buffer.len().min(*left));
                *left -= piece.len();
                Ok(Some(piece.freeze()))
            }
            BodyFraming::ToEnd => {
                let more = !self.buffer.is_empty() || self.fill().await?;
                Ok(more.then(|| self.buffer.split().freeze()))
            }
            BodyFraming::Chunked => {
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
                    *framing = BodyFraming::Length(0);
                }
                Ok((size > 0).then(|| piece.freeze()))
            }
        }
    }

    /// Reads a whole body.
    pub async fn body(&mut self, mut framing: BodyFraming) -> io::Result<String> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut framing).await? {
            body.extend_from_slice(&piece);
        }
        String::from_utf8(body).map_err(io::Error::other)
    }

    /// Reads and discards everything until the peer closes the connection.
    pub async fn end(&mut self) {
        while let Ok(true) = self.fill().await {
            self.buffer.clear();
        }
    }
}
