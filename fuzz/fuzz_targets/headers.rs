//! Encoded headers decode to the original text, and a request that mirrors its arguments passes the check.
#![no_main]

use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use toolyard_core::{Json, Object};
use toolyard_mcp::wire::headers::{decode, encode, header_params};

const SCHEMA: &str = r#"{"type":"object","properties":{
    "text":{"type":"string","x-mcp-header":"Text"},
    "deep":{"properties":{"number":{"type":"integer","x-mcp-header":"Number"}}},
    "flag":{"type":"boolean","x-mcp-header":"Flag"}}}"#;

fuzz_target!(|input: (&str, i64, Option<bool>, &[u8], &str)| {
    let (text, number, flag, raw, schema) = input;
    assert_eq!(decode(&encode(text)).as_deref(), Some(text));
    if let Ok(header) = HeaderValue::from_bytes(raw)
        && let Some(read) = decode(&header)
    {
        assert_eq!(decode(&encode(&read)), Some(read));
    }
    mirror(text, number, flag);
    // No schema causes a panic.
    if let Ok(schema) = Json::parse(schema.to_owned()) {
        let _read = header_params(Some(&schema));
    }
});

/// Writes the headers of a call, as a client does, and checks them, as a server does.
fn mirror(text: &str, number: i64, flag: Option<bool>) {
    let flag = flag.map_or("null".to_owned(), |flag| flag.to_string());
    let text = Json::string(text);
    let arguments = format!(r#"{{"text":{},"deep":{{"number":{number}}},"flag":{flag}}}"#, text.as_text());
    let arguments = Object::parse(arguments).expect("an object");
    let schema = Json::parse(SCHEMA).expect("a schema");
    let params = header_params(Some(&schema)).expect("legal annotations");
    let mut headers = HeaderMap::new();
    for param in &params {
        if let Some(value) = param.value(&arguments) {
            headers.insert(&param.header, encode(&value));
        }
    }
    for param in &params {
        let _safe = param.check(&headers, &arguments).map_err(|problem| panic!("{problem}: {headers:?}"));
    }
}
