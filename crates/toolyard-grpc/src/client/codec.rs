//! Codecs: one that leaves messages encoded, since descriptors that are known at run time only convert them, and one
//! that counts the bytes of decoded messages.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use toolyard_net::budget::{BudgetExhausted, ByteBudget, ByteReservation, SMALL_MESSAGE};

/// Length of the prefix of a message, in bytes (gRPC over HTTP/2).
const PREFIX_BYTES: usize = 5;

/// Passes messages as bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(message.len());
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// The bytes of a response that were received and not decoded yet, with their reservation. The body adds to them, and the
/// decoder takes from them.
#[derive(Debug, Clone, Default)]
pub(super) struct UndecodedBytes(Arc<Mutex<Undecoded>>);

#[derive(Debug, Default)]
struct Undecoded {
    bytes: usize,
    reserved: ByteReservation,
}

impl UndecodedBytes {
    /// Adds received bytes. A small message needs no reservation.
    ///
    /// # Errors
    /// If the budget is exhausted.
    pub(super) fn add(&self, bytes: usize, budget: &ByteBudget) -> Result<(), BudgetExhausted> {
        let mut undecoded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        undecoded.bytes = undecoded.bytes.saturating_add(bytes);
        let missing = undecoded.bytes.saturating_sub(undecoded.reserved.bytes());
        if undecoded.bytes > SMALL_MESSAGE && missing > 0 {
            undecoded.reserved.add(budget.try_reserve(missing)?);
        }
        Ok(())
    }

    /// Takes the bytes of a decoded message. Returns its part of the reservation.
    fn take(&self, bytes: usize) -> ByteReservation {
        let mut undecoded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        undecoded.bytes = undecoded.bytes.saturating_sub(bytes);
        let (rest, mut taken) = (undecoded.bytes, std::mem::take(&mut undecoded.reserved));
        undecoded.reserved = taken.split(rest);
        taken
    }
}

/// Decodes messages together with their part of the reservation of a response.
#[derive(Debug, Clone)]
pub(super) struct CountingCodec<C> {
    pub(super) codec: C,
    pub(super) undecoded: UndecodedBytes,
}

impl<C: Codec> Codec for CountingCodec<C> {
    type Encode = C::Encode;
    type Decode = (C::Decode, ByteReservation);
    type Encoder = C::Encoder;
    type Decoder = CountingCodec<C::Decoder>;

    fn encoder(&mut self) -> Self::Encoder {
        self.codec.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        CountingCodec { codec: self.codec.decoder(), undecoded: self.undecoded.clone() }
    }
}

impl<D: Decoder> Decoder for CountingCodec<D> {
    type Item = (D::Item, ByteReservation);
    type Error = D::Error;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, D::Error> {
        let bytes = buffer.remaining() + PREFIX_BYTES;
        let message = self.codec.decode(buffer)?;
        Ok(message.map(|message| (message, self.undecoded.take(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undecoded_bytes_are_counted() {
        let budget = ByteBudget::new(64 << 10);
        let undecoded = UndecodedBytes::default();
        for (bytes, used) in [(SMALL_MESSAGE, 0), (1, SMALL_MESSAGE + 1024), (1024, SMALL_MESSAGE + 2048)] {
            undecoded.add(bytes, &budget).unwrap();
            assert_eq!(budget.used(), used);
        }
        assert!(undecoded.add(64 << 10, &budget).is_err());
        drop(undecoded);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn decoded_message_takes_its_part_of_the_reservation() {
        let budget = ByteBudget::new(64 << 10);
        let undecoded = UndecodedBytes::default();
        undecoded.add(40 << 10, &budget).unwrap();
        let message = undecoded.take(30 << 10);
        assert_eq!((message.bytes(), budget.used()), (30 << 10, 40 << 10));
        drop(message);
        assert_eq!(budget.used(), 10 << 10);
        // A long stream of messages that are used at once needs the budget of one.
        for _ in 0..100 {
            undecoded.add(50 << 10, &budget).unwrap();
            drop(undecoded.take(50 << 10));
        }
        assert_eq!(budget.used(), 10 << 10);
    }
}
