//! Messages of a bus are read without panics and written as they were read, and no header of one becomes a member of its
//! envelope.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_bus::announcement::{WorkerQuery, WorkerState, WorkerTools};
use toolyard_bus::message::{
    McpRegisterServerRequest, McpServersIndexed, ScriptInvokeRequest, TYPES, ToolProgress, ToolResult,
};
use toolyard_bus::record::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse};
use toolyard_bus::{BusMessage, Envelope, Topic, TopicPattern};

/// Maximum size of a message.
const MAX_BYTES: usize = 1 << 20;

fuzz_target!(|input: (Vec<(&str, &str)>, &[u8], u8, &str, &str)| {
    let (headers, body, kind, topic, pattern) = input;
    let read = Envelope::from_headers(headers, body.to_vec().into());
    let _topic = read.reply_topic();
    if read.check(MAX_BYTES).is_ok() {
        let written = read.to_headers();
        let pairs = written.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        assert_eq!(Envelope::from_headers(pairs, read.body.clone()), read);
    }
    let message_type = TYPES[usize::from(kind) % TYPES.len()].to_owned();
    let envelope = Envelope { message_type, ..read };
    round_trip::<ToolInvokeRequest>(&envelope);
    round_trip::<ToolInvokeResponse>(&envelope);
    round_trip::<ToolInvokeError>(&envelope);
    round_trip::<ToolProgress>(&envelope);
    round_trip::<ToolResult>(&envelope);
    round_trip::<McpServersIndexed>(&envelope);
    round_trip::<McpRegisterServerRequest>(&envelope);
    round_trip::<ScriptInvokeRequest>(&envelope);
    round_trip::<WorkerState>(&envelope);
    round_trip::<WorkerTools>(&envelope);
    round_trip::<WorkerQuery>(&envelope);
    if let Ok(request) = envelope.read::<ToolInvokeRequest>() {
        let _call = request.to_call();
    }
    if let (Ok(topic), Ok(pattern)) = (topic.parse::<Topic>(), pattern.parse::<TopicPattern>()) {
        let _matches = pattern.matches(&topic);
        assert!(TopicPattern::from(topic.clone()).matches(&topic));
    }
});

/// A body that is a message is the same message after it was written.
fn round_trip<M: BusMessage + PartialEq + std::fmt::Debug>(envelope: &Envelope) {
    let Ok(message) = envelope.read::<M>() else { return };
    let written = serde_json::to_vec(&message).expect("JSON");
    assert_eq!(Envelope { body: written.into(), ..envelope.clone() }.read::<M>(), Ok(message));
}
