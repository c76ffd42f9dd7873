use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// Parses a text.
fn show(text: &str) -> String {
    match RpcMessage::parse(text.to_owned()) {
        Ok(RpcMessage::Request { id, method, params, meta }) => {
            let (params, meta) = (params.to_json(), meta.to_json());
            format!("request {id:?} {method} {} {}", params.as_text(), meta.as_text())
        }
        Ok(RpcMessage::Notification { method, body }) => {
            let envelope = if body.envelope.is_empty() {
                String::new()
            } else {
                format!(" {}", body.envelope.to_json().as_text())
            };
            format!("notification {method} {}{envelope}", body.params.to_json().as_text())
        }
        Ok(RpcMessage::Response { id, answer: Ok(result) }) => format!("result {id:?} {}", result.as_text()),
        Ok(RpcMessage::Response { id, answer: Err(error) }) => {
            format!("error {id:?} {} {}", error.code, error.body().as_text())
        }
        Err(bad) => format!("malformed {:?} {}", bad.id, bad.error.body().as_text()),
    }
}

fn table(members: &[&str]) -> String {
    let line = |members: &&str| show(&format!("{{\"jsonrpc\":\"2.0\"{members}}}"));
    members.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn messages() {
    assert_snapshot!(table(&[
        r#","id":1,"method":"m""#,
        r#","id":"1","method":"m","params":null"#,
        r#","id":1.0,"method":"a\u0062","params":{"x":1.10,"_meta":{"y":[ ]}}"#,
        r#","id":1,"method":"m","params":{"_meta":null}"#,
        r#","method":"m","params":{"_meta":{}}"#,
        r#","id":1,"result":{ "a" : 1 }"#,
        r#","id":1,"result":null"#,
        r#","id":1,"error":{"code":-32601,"message":"m","x":1}"#,
        r#","id":1,"error":{"code":1e3}"#,
        r#","error":"oops""#,
        r#","id":null,"error":{}"#,
        // A peer may add members; with a method, it is a request in any case.
        r#","id":1,"method":"m","result":{},"x":1"#,
    ]), @r#"
    request 1 m {} {}
    request "1" m {} {}
    request 1.0 ab {"x":1.10,"_meta":{"y":[ ]}} {"y":[ ]}
    request 1 m {"_meta":null} {}
    notification m {"_meta":{}}
    result Some(1) { "a" : 1 }
    result Some(1) null
    error Some(1) -32601 {"code":-32601,"message":"m","x":1}
    error Some(1) 0 {"code":1e3}
    error None 0 "oops"
    error None 0 {}
    request 1 m {} {}
    "#);
}

#[test]
fn invalid_messages_are_refused() {
    assert_snapshot!(table(&[
        "",
        r#","id":1"#,
        r#","id":null,"method":"m""#,
        r#","id":{},"method":"m""#,
        r#","id":1,"method":null"#,
        r#","id":1,"method":"m","params":[]"#,
        r#","id":1,"method":"m","params":{"a":1,"\u0061":2}"#,
        r#","id":1,"method":"m","params":{"_meta":1}"#,
        r#","id":1,"method":"m","params":{"_meta":{"a":1,"a":2}}"#,
        r#","id":1,"result":1,"error":{}"#,
        r#","id":1,"id":1,"method":"m""#,
        r#","jsonrpc":"2.0""#,
    ]), @r#"
    malformed None {"code":-32600,"message":"Invalid request: none of `method`, `result` and `error`"}
    malformed Some(1) {"code":-32600,"message":"Invalid request: none of `method`, `result` and `error`"}
    malformed None {"code":-32600,"message":"Invalid request: `id` is null"}
    malformed None {"code":-32600,"message":"Invalid request: `id` is neither a string nor a number"}
    malformed Some(1) {"code":-32600,"message":"Invalid request: `method` is not a string"}
    malformed Some(1) {"code":-32602,"message":"`params` is not an object with unique members"}
    malformed Some(1) {"code":-32602,"message":"`params` is not an object with unique members"}
    malformed Some(1) {"code":-32602,"message":"`params._meta` is not an object with unique members"}
    malformed Some(1) {"code":-32602,"message":"`params._meta` is not an object with unique members"}
    malformed Some(1) {"code":-32600,"message":"Invalid request: both `result` and `error`"}
    malformed None {"code":-32700,"message":"Parse error: a member is named twice in the object at byte 0"}
    malformed None {"code":-32700,"message":"Parse error: a member is named twice in the object at byte 0"}
    "#);
    assert_snapshot!(["", "[]", "7", "{", r#"{"id":1,"method":"m"}"#, r#"{"jsonrpc":2,"id":[]}"#].map(show).join("\n"), @r#"
    malformed None {"code":-32700,"message":"Parse error: the text ends where a value is expected at byte 0"}
    malformed None {"code":-32600,"message":"Invalid request: a message is an object"}
    malformed None {"code":-32600,"message":"Invalid request: a message is an object"}
    malformed None {"code":-32700,"message":"Parse error: expected a string at byte 1"}
    malformed Some(1) {"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}
    malformed None {"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}
    "#);
}

#[test]
fn differently_written_ids_differ() {
    let ids = ["1", "1.0", "1e0", "\"1\"", "\"\\u0031\"", "01"]
        .map(|text| Json::parse(text).ok().and_then(|json| RequestId::parse(&json)));
    assert!(ids[..5].iter().all(Option::is_some) && ids[5].is_none());
    for (i, id) in ids[..5].iter().enumerate() {
        assert!(ids[..i].iter().all(|other| other != id), "{id:?}");
    }
    assert_eq!(ids.map(|id| id?.to_number()), [Some(1), None, None, None, None, None]);
}

#[test]
fn response_id_is_optional() {
    let id = RequestId::parse(&Json::string("a")).unwrap();
    let result = || Ok(vec![Bytes::from_static(b"{\"x\":"), Bytes::from_static(b"1}")]);
    let error = || Err(RpcError::invalid_params("no"));
    let lines = [response(Some(&id), result()), response(Some(&id), error()), response(None, error())];
    let lines = lines.map(|pieces| String::from_utf8(pieces.concat()).unwrap());
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":"a","result":{"x":1}}
    {"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"no"}}
    {"jsonrpc":"2.0","error":{"code":-32602,"message":"no"}}
    "#);
}

proptest! {
    #[test]
    fn written_messages_are_parsed(number: u64, method: String, key: String, text: String) {
        let params = Object::new().with(&key, Json::string(&text));
        let id = RequestId::number(number);
        let serialized = request(&id, &method, &params);
        // Streams are framed by lines.
        prop_assert!(!serialized.contains(&b'\n'));
        let read = RpcMessage::parse(serialized);
        if key == "_meta" {
            prop_assert!(read.is_err());
        } else {
            let meta = Object::new();
            let expect = RpcMessage::Request { id, method: method.clone(), params: params.clone(), meta };
            prop_assert_eq!(read, Ok(expect));
            let read = RpcMessage::parse(notification(&method, &params));
            prop_assert_eq!(read, Ok(RpcMessage::Notification { method: method.clone(), body: params.clone().into() }));
            let envelope = Object::new().with(&format!("x{key}"), Json::string(&text));
            let body = NotificationBody { params, envelope };
            let read = RpcMessage::parse(notification_with(&method, &body));
            prop_assert_eq!(read, Ok(RpcMessage::Notification { method, body }));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = RpcMessage::parse(bytes);
    }
}
