//! A stream means the same wherever it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_net::sse::{Decoder, Event, TooLarge};

fn read(stream: &[u8], step: usize) -> Result<Vec<Event>, TooLarge> {
    let mut decoder = Decoder::new(1 << 20);
    let mut events = Vec::new();
    for piece in stream.chunks(step.max(1)) {
        decoder.push(piece);
        while let Some(event) = decoder.next_event()? {
            events.push(event);
        }
    }
    Ok(events)
}

fuzz_target!(|input: (&[u8], u8)| {
    let (stream, step) = input;
    assert_eq!(read(stream, step.into()), read(stream, stream.len()));
});
