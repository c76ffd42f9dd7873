//! Events do not depend on the chunks of the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_net::sse::{EventTooLarge, SseDecoder, SseEvent};

fn read(stream: &[u8], step: usize) -> Result<Vec<SseEvent>, EventTooLarge> {
    let mut decoder = SseDecoder::new(1 << 20);
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
