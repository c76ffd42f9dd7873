//! The parser agrees with serde_json, and round trips change nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_core::Json;

fuzz_target!(|text: &[u8]| {
    let Ok(json) = Json::parse(text.to_vec()) else {
        // Anything refused here for its grammar is refused by serde_json.
        assert!(serde_json::from_slice::<serde_json::Value>(text).is_err());
        return;
    };
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(text) {
        assert_eq!(json.to_value(), value);
    }
    if let Ok(object) = json.to_object() {
        assert_eq!(object.to_json().to_object().as_ref(), Ok(&object));
        assert_eq!(object.to_pieces().concat(), object.to_json().as_bytes());
    }
});
