//! Bodies: limited when read, without copies when written.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout};

use crate::budget::{BudgetExhausted, ByteBudget, ByteReservation, SMALL_MESSAGE};

/// A body could not be read completely.
#[derive(Debug, thiserror::Error)]
pub enum BodyReadError {
    /// The body is larger than the limit.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The connection broke.
    #[error("the connection broke before the end of the body")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The budget is exhausted. The rest of the body was discarded except for its ends.
    #[error("{0}")]
    UsedUp(BudgetExhausted, BodyEnds),
    /// The body paused for too long while others waited for memory.
    #[error("the body stalled while memory is short")]
    Stalled,
}

/// The first and the last bytes of a body, up to [`BodyEnds::LENGTH`] of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyEnds {
    /// The first bytes.
    pub first: Vec<u8>,
    /// The last bytes that are not among the first ones.
    pub last: Vec<u8>,
}

impl BodyEnds {
    /// Maximum length of each end, in bytes.
    pub const LENGTH: usize = 256;

    fn add(&mut self, bytes: &[u8]) {
        let room = (Self::LENGTH - self.first.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.first.extend_from_slice(first);
        self.last.extend_from_slice(&rest[rest.len().saturating_sub(Self::LENGTH)..]);
        let surplus = self.last.len().saturating_sub(Self::LENGTH);
        self.last.drain(..surplus);
    }
}

/// Maximum pause of a body that holds memory of a short budget.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of a refused body that are read and dropped, so that its client can read the response.
pub const MAX_DRAINED_BYTES: u64 = 64 << 20;

/// Maximum time in which a refused body is read and dropped.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Maximum pause of a refused body while it is read and dropped.
const DRAIN_PAUSE: Duration = Duration::from_secs(1);

/// Number of bytes that a body reserves at a time.
const RESERVATION_STEP: usize = 64 * 1024;

/// Reads a complete body. A body of one frame, as most are, is not copied.
///
/// # Errors
/// Errors as soon as more than `limit` bytes are announced or received, or if the connection breaks.
pub async fn read<B>(body: B, limit: usize) -> Result<Bytes, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    read_within(body, limit, &ByteBudget::default()).await
}

/// Reads a complete body. The bytes of a larger body are reserved in the budget as they arrive, for the lifetime of
/// any slice of the body.
///
/// # Errors
/// As [`read`], and if the budget is exhausted.
pub async fn read_within<B>(body: B, limit: usize, budget: &ByteBudget) -> Result<Bytes, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    read_with_budget(body, limit, || budget.clone()).await
}

/// Reads a complete body, as [`read_within`]; `budget` is only called for a body that is not small.
///
/// # Errors
/// As [`read_within`].
pub async fn read_with_budget<B>(
    mut body: B,
    limit: usize,
    budget: impl FnOnce() -> ByteBudget,
) -> Result<Bytes, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(BodyReadError::TooLarge(limit));
    }
    let Some(first) = next_data(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(BodyReadError::TooLarge(limit));
    }
    if body.is_end_stream() && first.len() <= SMALL_MESSAGE {
        return Ok(first);
    }
    let budget = &budget();
    let (bytes, reserved) = (BytesMut::new(), ByteReservation::default());
    let mut growing = GrowingBody { bytes, reserved, room: SMALL_MESSAGE, deadline: None };
    let mut frame = first;
    loop {
        if growing.bytes.len() + frame.len() > limit {
            return Err(BodyReadError::TooLarge(limit));
        }
        if let Err(used_up) = growing.add(&frame, announced, budget).await {
            let mut ends = BodyEnds::default();
            ends.add(&growing.bytes);
            ends.add(&frame);
            let read = growing.bytes.len() + frame.len();
            drop((growing, frame));
            return Err(discard_rest(body, read, limit, ends, used_up).await);
        }
        match next_frame(&mut body, &growing, budget).await? {
            Some(next) => frame = next,
            None => return Ok(growing.finish()),
        }
    }
}

/// Reads the complete body of a request, as [`read_with_budget`]. The rest of a body over the limit is read and dropped,
/// up to [`MAX_DRAINED_BYTES`] and until the client pauses: a client that sees its connection end while it sends does
/// not read the response. A client that waits for `100 Continue` has not sent anything yet.
///
/// # Errors
/// As [`read_within`].
pub async fn read_request<B>(
    headers: &HeaderMap,
    mut body: B,
    limit: usize,
    budget: impl FnOnce() -> ByteBudget,
) -> Result<Bytes, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let is_announced = body.size_hint().lower() > limit as u64;
    let read = read_with_budget(&mut body, limit, budget).await;
    let waits = is_announced && headers.contains_key(header::EXPECT);
    if matches!(read, Err(BodyReadError::TooLarge(_))) && !waits {
        drain(body).await;
    }
    read
}

/// Reads and drops the rest of a body, unless it is announced to be larger than [`MAX_DRAINED_BYTES`].
async fn drain<B>(mut body: B)
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut rest = MAX_DRAINED_BYTES;
    if body.size_hint().lower() > rest {
        return;
    }
    let drained = async {
        while let Ok(Ok(Some(data))) = timeout(DRAIN_PAUSE, next_data(&mut body)).await {
            match rest.checked_sub(data.len() as u64) {
                Some(less) => rest = less,
                None => return,
            }
        }
    };
    let _in_time = timeout(DRAIN_TIME, drained).await;
}

/// A body while it is read.
struct GrowingBody {
    bytes: BytesMut,
    reserved: ByteReservation,
    /// Number of bytes that fit into the reservation.
    room: usize,
    /// Deadline of all waits for the budget.
    deadline: Option<Instant>,
}

impl GrowingBody {
    async fn add(
        &mut self,
        frame: &Bytes,
        announced: usize,
        budget: &ByteBudget,
    ) -> Result<(), BudgetExhausted> {
        let length = self.bytes.len() + frame.len();
        if length > self.room {
            let room = length.max((self.room + RESERVATION_STEP).min(announced));
            // A small body is not counted, but all bytes of a larger one are.
            let before = if self.room == SMALL_MESSAGE { 0 } else { self.room };
            self.reserved.add(budget.reserve_by(room - before, &mut self.deadline).await?);
            self.room = room;
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(announced.max(length));
        }
        self.bytes.extend_from_slice(frame);
        Ok(())
    }

    fn finish(mut self) -> Bytes {
        let bytes = self.bytes.freeze();
        self.reserved.shrink(bytes.len());
        self.reserved.hold(bytes)
    }
}

/// The next frame of a body. A body that holds memory of a short budget must not pause for long.
async fn next_frame<B>(
    body: &mut B,
    growing: &GrowingBody,
    budget: &ByteBudget,
) -> Result<Option<Bytes>, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut next = pin!(next_data(body));
    if growing.room <= SMALL_MESSAGE {
        return next.await;
    }
    loop {
        match timeout(STALL_TIMEOUT, &mut next).await {
            Ok(frame) => return frame,
            Err(_) if budget.is_short() => return Err(BodyReadError::Stalled),
            Err(_) => {}
        }
    }
}

/// Reads the rest of a body that does not fit into the budget, and keeps its ends.
async fn discard_rest<B>(
    mut body: B,
    mut read: usize,
    limit: usize,
    mut ends: BodyEnds,
    used_up: BudgetExhausted,
) -> BodyReadError
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    loop {
        match next_data(&mut body).await {
            Ok(Some(frame)) => {
                read += frame.len();
                ends.add(&frame);
                if read > limit {
                    return BodyReadError::TooLarge(limit);
                }
            }
            Ok(None) => return BodyReadError::UsedUp(used_up, ends),
            Err(error) => return error,
        }
    }
}

/// Reads the beginning of a body, up to `limit` bytes, and returns `true` with it if that is the complete body.
///
/// # Errors
/// Errors if the connection breaks before.
pub async fn read_start<B>(mut body: B, limit: usize) -> Result<(Bytes, bool), BodyReadError>
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

/// Returns the next data frame; `None` at the end.
///
/// # Errors
/// Errors if the connection breaks.
pub async fn next_data<B>(body: &mut B) -> Result<Option<Bytes>, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    while !body.is_end_stream() {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(BodyReadError::Broken(error.into())),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                Ok(_) | Err(_) => {}
            },
        }
    }
    Ok(None)
}

/// A body of existing pieces, such as a prepared list between two parts of an envelope.
#[derive(Debug, Default)]
pub struct BodyPieces {
    pieces: VecDeque<Bytes>,
}

/// Maximum length of pieces that are joined into one buffer: writing a few kilobytes at once is faster than a vectored
/// write.
const MAX_JOINED_BYTES: usize = 8 * 1024;

/// Joins small pieces into one; larger ones stay as they are.
#[must_use]
pub fn join_small(pieces: Vec<Bytes>) -> Vec<Bytes> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    match pieces.len() {
        0 | 1 => pieces,
        _ if length > MAX_JOINED_BYTES => pieces,
        _ => vec![pieces.concat().into()],
    }
}

impl BodyPieces {
    /// A body of `pieces` in this order.
    #[must_use]
    pub fn new(pieces: Vec<Bytes>) -> Self {
        let mut pieces = join_small(pieces);
        pieces.retain(|piece| !piece.is_empty());
        Self { pieces: pieces.into() }
    }
}

impl Body for BodyPieces {
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
        // Not joined, so that the reader gets each frame.
        let body =
            BodyPieces { pieces: pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(read(body, limit));
        assert_eq!(read.as_deref().map_err(|_| ()), expect.map(str::as_bytes));
    }

    #[test]
    fn body_is_read_up_to_its_limit() {
        check(&[], 0, Ok(""));
        check(&["abc"], 3, Ok("abc"));
        check(&["abc"], 2, Err(()));
        check(&["a", "", "bc", "d"], 4, Ok("abcd"));
        check(&["a", "bc", "d"], 3, Err(()));
    }

    /// Checks the result of a body of these frames with `left` bytes of a budget of 256 KiB, and the bytes that it then
    /// holds.
    #[track_caller]
    fn check_budget(frames: &[usize], left: usize, expect: &str) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let budget = ByteBudget::new(256 << 10);
        let _reserved = budget.try_reserve((256 << 10) - left).unwrap();
        let before = budget.used();
        let pieces = frames.iter().enumerate().map(|(at, size)| vec![b'a' + at as u8; *size].into());
        let read = runtime.block_on(read_within(BodyPieces { pieces: pieces.collect() }, 1 << 20, &budget));
        let reserved_kib = (budget.used() - before) >> 10;
        let outcome = match read {
            Ok(bytes) => format!("{} bytes, {reserved_kib} KiB held", bytes.len()),
            Err(BodyReadError::UsedUp(_, BodyEnds { first, last })) => {
                let ends = [first.first(), last.last()].map(|byte| byte.map_or('-', |byte| *byte as char));
                format!("used up {}{}, {reserved_kib} KiB held", ends[0], ends[1])
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(outcome, expect, "{frames:?}");
    }

    #[test]
    fn large_bodies_are_reserved_in_the_budget() {
        const KIB: usize = 1 << 10;
        check_budget(&[16 * KIB], 0, "16384 bytes, 0 KiB held");
        check_budget(&[8 * KIB, 8 * KIB], 0, "16384 bytes, 0 KiB held");
        check_budget(&[17 * KIB], 17 * KIB, "17408 bytes, 17 KiB held");
        check_budget(&[16 * KIB, 1], 64 * KIB, "16385 bytes, 17 KiB held");
        check_budget(&[64 * KIB, 64 * KIB, 64 * KIB], 192 * KIB, "196608 bytes, 192 KiB held");
        check_budget(&[64 * KIB, 64 * KIB, 64 * KIB], 191 * KIB, "used up ac, 0 KiB held");
        check_budget(&[100, 17 * KIB, 5], KIB, "used up ac, 0 KiB held");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_body_fails_when_the_budget_is_short() {
        let endless = || {
            let pieces = [Bytes::from(vec![b'x'; 64 << 10])].map(Ok::<_, Infallible>);
            let pieces = futures_util::StreamExt::chain(
                futures_util::stream::iter(pieces),
                futures_util::stream::pending(),
            );
            axum::body::Body::from_stream(pieces)
        };
        let budget = ByteBudget::new(64 << 10);
        assert!(matches!(read_within(endless(), 1 << 20, &budget).await, Err(BodyReadError::Stalled)));
        assert_eq!(budget.used(), 0);
        // With enough memory the body may take its time.
        let large = ByteBudget::new(1 << 20);
        let reading = timeout(Duration::from_secs(60), read_within(endless(), 1 << 20, &large));
        assert!(reading.await.is_err());
    }

    #[test]
    fn start_of_a_body_is_read_up_to_its_limit() {
        for (limit, expect) in
            [(0, ("", false)), (2, ("ab", false)), (4, ("abcd", true)), (9, ("abcd", true))]
        {
            let body = BodyPieces { pieces: ["a", "bc", "d"].map(|piece| piece.as_bytes().into()).into() };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (start, whole) = runtime.block_on(read_start(body, limit)).unwrap();
            assert_eq!((&*start, whole), (expect.0.as_bytes(), expect.1));
        }
    }

    #[test]
    fn small_pieces_are_joined() {
        let piece = |length| Bytes::from(vec![b'x'; length]);
        let frames =
            |lengths: &[usize]| BodyPieces::new(lengths.iter().map(|&n| piece(n)).collect()).pieces.len();
        assert_eq!([frames(&[1, 2, 3]), frames(&[10, 0, MAX_JOINED_BYTES]), frames(&[0])], [1, 2, 0]);
    }
}
