//! A message that was read can be written, and is read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_mcp::wire::{Message, message};

fuzz_target!(|text: &[u8]| {
    let Ok(message) = Message::parse(text.to_vec()) else { return };
    let written = match &message {
        Message::Request { id, method, params, .. } => message::request(id, method, params),
        Message::Notification { method, params } => message::notification(method, params),
        Message::Response { id, answer } => {
            let answer = answer.clone().map(|result| vec![result.bytes()]);
            message::response(id.as_ref(), answer).concat().into()
        }
    };
    assert_eq!(Message::parse(written), Ok(message));
});
