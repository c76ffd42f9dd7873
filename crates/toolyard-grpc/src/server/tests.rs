use super::*;

#[test]
fn arguments_are_read() {
    let check = |text: &str, expected: Result<&str, &str>| {
        let arguments = arguments_of(text.to_owned());
        let arguments = arguments.map(|json| json.as_text().to_owned()).map_err(|status| {
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            status.message().to_owned()
        });
        assert_eq!(arguments, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    };
    for text in ["", " \n", "null", " null ", "{}"] {
        check(text, Ok("{}"));
    }
    check(r#" {"a": 1.10} "#, Ok(r#"{"a": 1.10}"#));
    for text in ["[]", "1", "\"{}\"", "false"] {
        check(text, Err("`arguments_json` is not a JSON object"));
    }
    check("{", Err("`arguments_json` is not JSON: expected a string at byte 1"));
    check("{} {}", Err("`arguments_json` is not JSON: text after the value at byte 3"));
}

#[test]
fn metadata_becomes_meta() {
    let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert!(meta_of(HashMap::new()).is_empty());
    let meta = meta_of(HashMap::from([entry("b", "2"), entry("a", "\"1\""), entry("progressToken", "x")]));
    let expected = r#"{"omnia.altairalabs.ai/metadata":{"a":"\"1\"","b":"2","progressToken":"x"}}"#;
    assert_eq!(meta.to_json().as_text(), expected);
}

#[test]
fn content_types_of_grpc() {
    let check = |content_type: &str, expected: bool| {
        let request = Request::post("/").header(header::CONTENT_TYPE, content_type).body(Body::empty());
        assert_eq!(is_grpc(&request.unwrap()), expected, "{content_type}");
    };
    for content_type in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
        check(content_type, true);
    }
    for content_type in ["application/json", "application/grpc-web", "application/grpcx", ""] {
        check(content_type, false);
    }
}
