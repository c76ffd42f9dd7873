//! Any descriptors become tools or an error, any arguments a message or an error, and any message a result or an error.
//! A result that can be sent again is the same afterwards.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_core::Json;
use toolyard_grpc::descriptor::{MethodFilter, ServiceTools};

// The input has a length, descriptors of that length, and arguments or a message.
fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (set, value) = rest.split_at(length);
    let Ok(tools) = ServiceTools::from_file_descriptor_set(set, &MethodFilter::default()) else { return };
    for method in tools.methods().iter().take(4) {
        let tool = method.tool();
        assert!(toolyard_core::names::is_legal(&tool.name));
        for schema in [tool.input_schema(), tool.output_schema()].into_iter().flatten() {
            assert!(schema.as_bytes().len() <= 64_000);
            assert!(jsonschema::draft202012::meta::is_valid(&schema.to_value()), "{}", schema.as_text());
        }
        if let Ok(result) = method.decode(value) {
            Json::parse(result).unwrap();
        }
        let arguments = Json::parse(value.to_vec());
        if let Ok(message) =
            arguments.map_err(drop).and_then(|json| method.encode(json.as_text()).map_err(drop))
        {
            // A response may be of another type.
            let _ = method.decode(&message);
        }
    }
});
