//! Bodies: bounded when read, not copied when written.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

/// Why a body could not be read whole.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is larger than allowed.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The connection broke.
    #[error("the body broke off")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// Reads a body whole. A body of one frame, as most are, is not copied.
///
/// # Errors
/// As soon as more than `limit` bytes are announced or have come, or when the connection breaks.
pub async fn read<B>(mut body: B, limit: usize) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(ReadError::TooLarge(limit));
    }
    let Some(first) = next_data(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(ReadError::TooLarge(limit));
    }
    let Some(mut frame) = next_data(&mut body).await? else { return Ok(first) };
    let mut whole = BytesMut::with_capacity(announced.max(first.len() + frame.len()));
    whole.extend_from_slice(&first);
    loop {
        if whole.len() + frame.len() > limit {
            return Err(ReadError::TooLarge(limit));
        }
        whole.extend_from_slice(&frame);
        match next_data(&mut body).await? {
            Some(next) => frame = next,
            None => return Ok(whole.freeze()),
        }
    }
}

/// Reads the beginning of a body, up to `limit` bytes, and says whether that is all of it.
///
/// # Errors
/// When the connection breaks before.
pub async fn read_start<B>(mut body: B, limit: usize) -> Result<(Bytes, bool), ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut start = BytesMut::new();
    while let Some(frame) = next_data(&mut body).await? {
        let room = limit - start.len();
        start.extend_from_slice(&frame[..frame.len().min(room)]);
        if frame.len() > room {
            return Ok((start.freeze(), false));
        }
    }
    Ok((start.freeze(), true))
}

/// The next frame of data; `None` at the end.
///
/// # Errors
/// When the connection breaks.
pub async fn next_data<B>(body: &mut B) -> Result<Option<Bytes>, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    while !body.is_end_stream() {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(ReadError::Broken(error.into())),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                Ok(_) | Err(_) => {}
            },
        }
    }
    Ok(None)
}

/// A body of pieces that exist already, such as a prepared list between two parts of an envelope.
#[derive(Debug, Default)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
}

/// Pieces that together are at most this long are put into one buffer: one write of a few kilobytes
/// costs less than a gathered one.
const WORTH_COPYING: usize = 8 * 1024;

/// The same text in one piece where it is small, else as it is.
#[must_use]
pub fn joined(pieces: Vec<Bytes>) -> Vec<Bytes> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    match pieces.len() {
        0 | 1 => pieces,
        _ if length > WORTH_COPYING => pieces,
        _ => vec![pieces.concat().into()],
    }
}

impl Pieces {
    /// A body of `pieces`, one behind the other.
    #[must_use]
    pub fn new(pieces: Vec<Bytes>) -> Self {
        Self { pieces: joined(pieces).into_iter().filter(|piece| !piece.is_empty()).collect() }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&'static str], limit: usize, expect: Result<&str, ()>) {
        // Not merged: the reader is to see the frames one by one.
        let body =
            Pieces { pieces: pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(read(body, limit));
        assert_eq!(read.as_deref().map_err(|_| ()), expect.map(str::as_bytes));
    }

    #[test]
    fn a_body_is_read_up_to_its_limit() {
        check(&[], 0, Ok(""));
        check(&["abc"], 3, Ok("abc"));
        check(&["abc"], 2, Err(()));
        check(&["a", "", "bc", "d"], 4, Ok("abcd"));
        check(&["a", "bc", "d"], 3, Err(()));
    }

    #[test]
    fn the_beginning_of_a_body() {
        for (limit, expect) in
            [(0, ("", false)), (2, ("ab", false)), (4, ("abcd", true)), (9, ("abcd", true))]
        {
            let body = Pieces { pieces: ["a", "bc", "d"].map(|piece| piece.as_bytes().into()).into() };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (start, whole) = runtime.block_on(read_start(body, limit)).unwrap();
            assert_eq!((&*start, whole), (expect.0.as_bytes(), expect.1));
        }
    }

    #[test]
    fn small_pieces_become_one() {
        let piece = |length| Bytes::from(vec![b'x'; length]);
        let frames =
            |lengths: &[usize]| Pieces::new(lengths.iter().map(|&n| piece(n)).collect()).pieces.len();
        assert_eq!([frames(&[1, 2, 3]), frames(&[10, 0, WORTH_COPYING]), frames(&[0])], [1, 2, 0]);
    }
}
