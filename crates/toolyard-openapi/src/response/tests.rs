//! Results, each in one line.

use http::{HeaderName, HeaderValue, Method};

use super::*;
use crate::operation::{
    BodyKind, OperationParameter, ParameterLocation, ParameterStyle, RequestBody, StyleOptions, ValueEncoding,
};

fn operation() -> OpenApiOperation {
    let parameter = |name: &str, location| OperationParameter {
        argument: name.into(),
        name: name.into(),
        location,
        encoding: ValueEncoding::Styled(StyleOptions {
            style: ParameterStyle::Simple,
            explode: false,
            allow_reserved: false,
        }),
        required: true,
    };
    let named = vec![("email".into(), "email".into()), ("body_type".into(), "kind".into())];
    let content = crate::operation::BodyContent::Members { named, accepts_others: false };
    OpenApiOperation {
        name: "it".into(),
        method: Method::POST,
        server: "https://a.example".into(),
        path: "/pets/{petId}".into(),
        parameters: vec![
            parameter("petId", ParameterLocation::Path),
            parameter("type", ParameterLocation::Query),
        ],
        body: Some(RequestBody {
            media_type: "application/json".into(),
            kind: BodyKind::Json,
            content,
            required: true,
        }),
        accept: Vec::new(),
    }
}

fn response(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Response<Bytes> {
    let mut response = Response::new(Bytes::copy_from_slice(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn json(output: &CallOutput) -> String {
    output.body.to_json().as_text().to_owned()
}

fn result(response: &Response<Bytes>, promise: ResultPromise) -> CallOutput {
    let uri = "https://user:pw@a.example:81/pets/7?key=secret".parse().unwrap();
    operation().result(response, &uri, promise)
}

#[track_caller]
fn check(content_type: &'static str, body: &[u8], promise: ResultPromise, expect: &CallOutput) {
    let output = result(&response(200, &[("content-type", content_type)], body), promise);
    assert_eq!(json(&output), json(expect), "{content_type} {}", String::from_utf8_lossy(body));
    assert!(!output.is_error);
}

fn both(shown: &str, structure: &str) -> CallOutput {
    let mut output = CallOutput::text(shown);
    output.body.set("structuredContent", Json::parse(structure.to_owned()).unwrap());
    output
}

#[test]
fn json_is_text_and_structured_content() {
    use ResultPromise::{Nothing, Object, Result};
    let text = "{\"n\": 1.10,\n \"x\": []}";
    for promise in [Nothing, Object] {
        for content_type in ["application/json", "application/hal+json; charset=utf-8", "text/plain", ""] {
            check(content_type, text.as_bytes(), promise, &both(text, text));
        }
    }
    check("application/json", text.as_bytes(), Result, &both(text, &format!("{{\"result\":{text}}}")));
    check("application/json", b"[1, 2.0]", Nothing, &CallOutput::text("[1, 2.0]"));
    for promise in [Object, Result] {
        check("application/json", b"[1, 2.0]", promise, &both("[1, 2.0]", r#"{"result":[1, 2.0]}"#));
        check("application/json", br#""a\nb""#, promise, &both("a\nb", r#"{"result":"a\nb"}"#));
    }
    check("application/json", b"{\"a\":", Nothing, &CallOutput::text("{\"a\":"));
    check("text/plain", br#""quoted""#, Nothing, &CallOutput::text(r#""quoted""#));
}

#[test]
fn text_responses() {
    use ResultPromise::{Nothing, Object, Result, Scalar};
    check("text/html", "<p>é".as_bytes(), Nothing, &CallOutput::text("<p>é"));
    check("text/html; charset=\"latin1\"", b"caf\xe9", Nothing, &CallOutput::text("café"));
    check("text/html", b"caf\xe9", Nothing, &CallOutput::text("caf\u{fffd}"));
    check("application/xml", b"<a/>", Nothing, &CallOutput::text("<a/>"));
    check("image/svg+xml", b"<svg/>", Nothing, &CallOutput::text("<svg/>"));
    check("application/octet-stream", b"a\tb\n", Nothing, &CallOutput::text("a\tb\n"));
    check("text/csv", b"a,b", Object, &both("a,b", r#"{"result":"a,b"}"#));
    check("text/csv", b"a,b", Scalar, &both("a,b", r#"{"result":"a,b"}"#));
    check("text/csv", b"a,b", Result, &both("a,b", r#"{"result":null}"#));
}

/// A service that has done what it was asked need not say so.
#[test]
fn success_without_a_body_fits_the_output_schema() {
    use ResultPromise::{Nothing, Object, Result, Scalar};
    for content_type in ["application/json", "text/plain", ""] {
        check(content_type, b"", Nothing, &CallOutput::text("200 OK"));
        check(content_type, b"", Object, &both("200 OK", "{}"));
        check(content_type, b"", Scalar, &both("200 OK", r#"{"result":null}"#));
        check(content_type, b"", Result, &both("200 OK", r#"{"result":null}"#));
    }
}

#[test]
fn binary_responses_keep_their_type() {
    let media = |kind: &str| {
        let block = format!(r#"{{"type":"{kind}","data":"iVBORw==","mimeType":"{kind}/x"}}"#);
        let content = Json::array([&Json::parse(block).unwrap()]);
        CallOutput { body: Object::new().with("content", content), is_error: false }
    };
    check("image/x", b"\x89PNG", ResultPromise::Nothing, &media("image"));
    check("Audio/X; a=b", b"\x89PNG", ResultPromise::Nothing, &media("audio"));
    let mut promised = media("image");
    promised.body.set("structuredContent", Json::parse("{}").unwrap());
    check("image/x", b"\x89PNG", ResultPromise::Object, &promised);
    let resource = |kind: &str, blob: &str| {
        let resource =
            format!(r#"{{"uri":"https://a.example:81/pets/7","mimeType":"{kind}","blob":"{blob}"}}"#);
        let block = block("resource").with("resource", Json::parse(resource).unwrap());
        CallOutput { body: Object::new().with("content", Json::array([&block.to_json()])), is_error: false }
    };
    check("application/pdf", b"%PDF", ResultPromise::Nothing, &resource("application/pdf", "JVBERg=="));
    check("", b"\xff\0", ResultPromise::Nothing, &resource("application/octet-stream", "/wA="));
    check(
        "application/octet-stream",
        b"a\0",
        ResultPromise::Nothing,
        &resource("application/octet-stream", "YQA="),
    );
}

#[test]
fn empty_response_is_described_by_its_status() {
    let description = |response: &Response<Bytes>| json(&result(response, ResultPromise::Nothing));
    let text = |text| json(&CallOutput::text(text));
    assert_eq!(description(&response(204, &[], b"")), text("204 No Content"));
    assert_eq!(description(&response(200, &[("content-type", "image/png")], b"")), text("200 OK"));
    assert_eq!(
        description(&response(201, &[("location", "/pets/8")], b"")),
        text("201 Created; Location: /pets/8")
    );
}

#[track_caller]
fn check_failure(status: u16, headers: &[(&'static str, &'static str)], body: &str, expect: &str) {
    let output = result(&response(status, headers, body.as_bytes()), ResultPromise::Object);
    assert!(output.is_error);
    assert_eq!(json(&output), json(&CallOutput::failure(expect)), "{status} {body}");
}

#[test]
fn failures_summarize_their_body() {
    let advice = "The server failed: other arguments or another attempt may help.";
    let failed = "HTTP 500 Internal Server Error";
    for (body, said) in [
        ("", String::new()),
        ("boom", ": boom".into()),
        (r#"{"type":"about:blank","detail":"why","title":"What","status":500}"#, ": What: why".into()),
        (r#"{"message":"why","code":[1]}"#, ": why\n{\"message\":\"why\",\"code\":[1]}".into()),
        (r#"{"error":{"message":"why"}}"#, ": why\n{\"error\":{\"message\":\"why\"}}".into()),
        (r#"{"error":"why"}"#, ": {\"error\":\"why\"}".into()),
        (r#"{"error":"e","error_description":"why"}"#, ": why".into()),
        ("[1]", ": [1]".into()),
    ] {
        check_failure(500, &[], body, &format!("{failed}{said}\n{advice}"));
    }
    let long = "x".repeat(2047) + "é" + "y";
    check_failure(500, &[], &long, &format!("{failed}: {}\n{advice}", "x".repeat(2047)));
    check_failure(
        302,
        &[("location", "/login")],
        "",
        "HTTP 302 Found (redirects are not followed; Location: /login)",
    );
    check_failure(599, &[], "", "HTTP 599");
    let tried = operation().failure("3 attempts exhausted: ", &response(404, &[], b""));
    assert!(json(&tried).contains("3 attempts exhausted: HTTP 404 Not Found"));
}

#[test]
fn failures_include_a_suggestion() {
    let named = |names| format!("Check these arguments: {names}.");
    let unnamed = "Check the arguments against the server's message and this tool's input schema.".to_owned();
    for (body, advice) in [
        (r#"{"title":"no","errors":{"email":["is taken"]}}"#, named("email")),
        (r#"{"detail":[{"loc":["query","petId"],"msg":"x","type":"missing"}]}"#, named("petId")),
        (r##"{"errors":[{"source":{"pointer":"#/kind"},"message":"x"}]}"##, named("body_type")),
        (r#"{"type":"x","title":"'email' and `type` are missing"}"#, named("type, email")),
        (r#"{"type":"x","title":"no","errors":[{"type":"y"}]}"#, unnamed.clone()),
        ("", unnamed),
    ] {
        let output = result(&response(422, &[], body.as_bytes()), ResultPromise::Nothing);
        let text = output.body.get("content").unwrap().to_items().unwrap()[0].to_object().unwrap();
        let text = text.get_str("text").unwrap().into_owned();
        assert_eq!(text.lines().last(), Some(&*advice), "{body}");
    }
    check_failure(404, &[], "", "HTTP 404 Not Found\nCheck petId: no such resource exists.");
    check_failure(
        415,
        &[],
        "",
        "HTTP 415 Unsupported Media Type\nThe server does not accept application/json here.",
    );
    check_failure(429, &[("retry-after", "7")], "", "HTTP 429 Too Many Requests\nTry again in 7 s.");
    check_failure(429, &[], "", "HTTP 429 Too Many Requests\nTry again later, and less often.");
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    check_failure(
        503,
        &[("retry-after", date)],
        "",
        &format!("HTTP 503 Service Unavailable\nTry again after {date}."),
    );
    for status in [401, 403, 405, 408, 409, 410, 412, 413, 428, 500, 502, 504] {
        let advised = operation().advice(&response(status, &[], b""), None);
        assert!(advised.is_some_and(|advice| advice.ends_with('.')), "{status}");
    }
    assert_eq!(operation().advice(&response(418, &[], b""), None), None);
}
