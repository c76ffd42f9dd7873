//! A parsed message survives serialization and parsing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_mcp::wire::{RpcMessage, message};

fuzz_target!(|text: &[u8]| {
    let Ok(message) = RpcMessage::parse(text.to_vec()) else { return };
    let serialized = match &message {
        RpcMessage::Request { id, method, params, .. } => message::request(id, method, params),
        RpcMessage::Notification { method, body } => message::notification_with(method, body),
        RpcMessage::Response { id, answer } => {
            let answer = answer.clone().map(|result| vec![result.bytes()]);
            message::response(id.as_ref(), answer).concat().into()
        }
    };
    assert_eq!(RpcMessage::parse(serialized), Ok(message));
});
