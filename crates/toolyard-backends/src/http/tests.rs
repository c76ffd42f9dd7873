//! Tables of requests and responses.

use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use toolyard_core::output_schema::OutputForm;
use toolyard_core::{CallOutput, Json, Object};

use super::request::HttpRequestPlan;
use super::response::ResponseConversion;
use super::target::RequestTarget;
use super::*;

fn fixed(method: Method, url: &str) -> HttpRequestPlan {
    HttpRequestPlan::new(method, RequestTarget::fixed(&url.parse().unwrap()))
}

fn template(method: Method, url: &str) -> HttpRequestPlan {
    HttpRequestPlan::new(method, RequestTarget::template(url))
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

/// Formats a request in one line: method, URL, headers that differ between requests, body; or its error.
fn format_request(plan: &HttpRequestPlan, arguments: &str) -> String {
    let arguments = (!arguments.is_empty()).then(|| json(arguments));
    let request = match plan.request(arguments.as_ref()) {
        Ok(request) => request,
        Err(error) => return format!("{}: {error}", error.code().row().wire),
    };
    let (head, body) = request.into_parts();
    let mut line = format!("{} {}", head.method, head.uri);
    for (name, value) in &head.headers {
        if ![header::ACCEPT, header::USER_AGENT].contains(name) {
            line.push_str(&format!(" {name}: {}", value.to_str().unwrap()));
        }
    }
    format!("{line} {}", std::str::from_utf8(&body).unwrap()).trim_end().to_owned()
}

#[track_caller]
fn check(plan: &HttpRequestPlan, arguments: &str, expect: &str) {
    assert_eq!(format_request(plan, arguments), expect, "{arguments}");
}

#[test]
fn body_is_the_unchanged_arguments() {
    let url = "https://a.example/b?c=d";
    let post = fixed(Method::POST, url);
    let text = r#"{"n": 1.10,  "big":12345678901234567890123, "a":[ ]}"#;
    check(&post, text, &format!("POST {url} content-type: application/json {text}"));
    for nothing in ["", "{}", "{ }"] {
        check(&post, nothing, "POST https://a.example/b?c=d");
    }
    check(
        &fixed(Method::PUT, url),
        r#"{"a":1}"#,
        &format!(r#"PUT {url} content-type: application/json {{"a":1}}"#),
    );
    check(
        &fixed(Method::PATCH, url),
        r#"{"a":1}"#,
        &format!(r#"PATCH {url} content-type: application/json {{"a":1}}"#),
    );
    check(&post, "[]", "invalid_arguments: Invalid arguments: expected an object at byte 0");
}

#[test]
fn methods_without_a_body_have_a_query() {
    let get = fixed(Method::GET, "http://a.example");
    check(&get, "", "GET http://a.example/");
    check(
        &get,
        r#"{"q":"a b&c=d/é?#%","n":1.10,"t":true,"z":null}"#,
        "GET http://a.example/?q=a%20b%26c%3Dd%2F%C3%A9%3F%23%25&n=1.10&t=true",
    );
    check(
        &get,
        r#"{"l":["a",2],"o":{"x":1},"m":[[1]],"e":[]}"#,
        "GET http://a.example/?l=a&l=2&o=%7B%22x%22%3A1%7D&m=%5B%5B1%5D%5D",
    );
    check(&get, r#"{"a b":"c\nd"}"#, "GET http://a.example/?a%20b=c%0Ad");
    check(&fixed(Method::DELETE, "http://a.example/?x=y"), r#"{"a":1}"#, "DELETE http://a.example/?x=y&a=1");
    check(
        &get,
        &format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000)),
        "invalid_arguments: Invalid arguments: the resulting URL is invalid or too long",
    );
}

#[test]
fn arguments_do_not_override_the_query_of_the_author() {
    let mut get = fixed(Method::GET, "http://a.example/?key=k");
    get.static_query = vec![("v".into(), "1 2".into())];
    check(&get, r#"{"key":"x","v":"3","w":"4"}"#, "GET http://a.example/?key=k&w=4&v=1%202");
    get.query_params = Some(vec!["w".into(), "u".into()]);
    check(&get, r#"{"w":"4","x":"5"}"#, "GET http://a.example/?key=k&w=4&v=1%202");
}

#[test]
fn each_argument_is_used_once() {
    let mut post = template(Method::POST, "https://a.example/users/{id}?lang={lang}");
    post.header_params = vec![("tenant".into(), HeaderName::from_static("x-tenant"))];
    post.query_params = Some(vec!["page".into()]);
    let arguments = r#"{"id":"a/b","lang":"d e","tenant":"t","page":2,"rest":1.0}"#;
    check(
        &post,
        arguments,
        r#"POST https://a.example/users/a%2Fb?lang=d%20e&page=2 content-type: application/json x-tenant: t {"rest":1.0}"#,
    );
    check(&post, r#"{"id":1,"lang":""}"#, "POST https://a.example/users/1?lang=");
    check(&post, r#"{"id":1,"lang":"e","tenant":null}"#, "POST https://a.example/users/1?lang=e");
    check(&post, r#"{"lang":"e"}"#, "invalid_arguments: Invalid arguments: /id: it is missing");
    check(
        &post,
        r#"{"id":1,"lang":"e","tenant":"a\r\nb: c"}"#,
        "invalid_arguments: Invalid arguments: /tenant: it is not a valid header value",
    );
}

#[test]
fn argument_stays_in_its_url_component() {
    let get = template(Method::GET, "https://a.example/v/{x}/z");
    check(&get, r#"{"x":"a/b?#.."}"#, "GET https://a.example/v/a%2Fb%3F%23../z");
    check(&get, r#"{"x":"%2e%2e"}"#, "GET https://a.example/v/%252e%252e/z");
    for climbing in [".", "..", "../x", "a/../..", r"..\\a", "..;x", "a/..;/b"] {
        let refused = "invalid_arguments: Invalid arguments: /x: it would change the path of the request";
        check(&get, &format!(r#"{{"x":"{climbing}"}}"#), refused);
    }
    check(&get, r#"{"x":""}"#, "invalid_arguments: Invalid arguments: /x: it is empty");
    let beside = template(Method::GET, "https://a.example/.{x}/?{y}");
    check(&beside, r#"{"x":"a","y":".."}"#, "GET https://a.example/.a/?..");
    check(&beside, r#"{"x":"_","y":"/../"}"#, "GET https://a.example/._/?%2F..%2F");
    let twice = template(Method::GET, "https://a.example/{x}/{x}#{y}");
    check(&twice, r#"{"x":"a"}"#, "GET https://a.example/a/a");

    let host = template(Method::GET, "https://{x}.example:8443/");
    assert!(host.target.has_variable_host() && !get.target.has_variable_host());
    check(&host, r#"{"x":"a.b-c"}"#, "GET https://a.b-c.example:8443/");
    for text in ["a/", "a:80", "a@b", "[::1]", "a?b", "", "é", "a b", "a\\\\b", "a%2fb"] {
        let refused = "invalid_arguments: Invalid arguments: /x: it is not valid in a host name";
        check(&host, &format!(r#"{{"x":"{text}"}}"#), refused);
    }
}

#[test]
fn bodies_are_completed_and_mapped() {
    let mut post = fixed(Method::POST, "http://a.example/");
    post.static_body = Object::new().with("a", Json::integer(1)).with("b", Json::integer(2));
    let sent = "POST http://a.example/ content-type: application/json";
    check(&post, "", &format!(r#"{sent} {{"a":1,"b":2}}"#));
    check(&post, r#"{"b":3.0,"c":4}"#, &format!(r#"{sent} {{"a":1,"b":3.0,"c":4}}"#));
    post.body_mapping = Some(mapping("{data: [b, c]}"));
    check(&post, r#"{"c":"x"}"#, &format!(r#"{sent} {{"data":[2,"x"]}}"#));
    post.body_mapping = Some(mapping("nothing"));
    check(&post, r#"{"c":"x"}"#, "POST http://a.example/");
    post.body_mapping = Some(mapping("length(a)"));
    check(&post, "", "execution_failed: A mapping of this tool does not fit the data");
}

#[test]
fn headers_of_the_manifest_override_defaults() {
    let mut post = fixed(Method::POST, "http://a.example/");
    post.content_type = HeaderValue::from_static("application/x");
    check(&post, r#"{"a":1}"#, r#"POST http://a.example/ content-type: application/x {"a":1}"#);
    post.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/y"));
    post.headers.insert(header::ACCEPT, HeaderValue::from_static("text/csv"));
    check(&post, r#"{"a":1}"#, r#"POST http://a.example/ content-type: application/y {"a":1}"#);
    assert_eq!(post.request(None).unwrap().headers()[header::ACCEPT], "text/csv");
}

/// Formats a result in one line.
fn result(output: Result<CallOutput, ToolError>) -> String {
    match output {
        Ok(output) => output.body.to_json().as_text().to_owned(),
        Err(error) => format!("{}: {error}", error.code().row().wire),
    }
}

#[track_caller]
fn check_output(reading: &ResponseConversion, content_type: &'static str, body: &[u8], expect: &str) {
    let content_type = HeaderValue::from_static(content_type);
    let output = reading.output(StatusCode::OK, Some(&content_type), Bytes::copy_from_slice(body));
    assert_eq!(result(output), expect, "{}", String::from_utf8_lossy(body));
}

fn text(text: &str) -> String {
    CallOutput::text(text).body.to_json().as_text().to_owned()
}

fn both(text: &str, structure: &str) -> String {
    CallOutput::text(text).body.with("structuredContent", json(structure)).to_json().as_text().to_owned()
}

#[test]
fn successful_responses_become_results() {
    let plain = ResponseConversion::default();
    check_output(
        &plain,
        "application/json",
        b"{\"n\": 1.10,\n \"x\": []}",
        &both("{\"n\": 1.10,\n \"x\": []}", "{\"n\": 1.10,\n \"x\": []}"),
    );
    check_output(&plain, "text/plain", br#"{"a":1}"#, &both(r#"{"a":1}"#, r#"{"a":1}"#));
    check_output(&plain, "application/json", b"[1, 2]", &text("[1, 2]"));
    check_output(&plain, "application/json", br#""a\nb""#, &text("a\nb"));
    check_output(&plain, "application/json", b"{\"a\":", &text("{\"a\":"));
    check_output(&plain, "text/html", "<p>é".as_bytes(), &text("<p>é"));
    check_output(&plain, "text/html; charset=latin1", b"caf\xe9", &text("caf\u{fffd}"));
    check_output(
        &plain,
        "image/png",
        b"\x89PNG\xff",
        "execution_failed: The response is neither JSON nor text",
    );
    check_output(&plain, "text/plain", b"", &text("200 OK"));
    let object = ResponseConversion { form: OutputForm::Object, ..ResponseConversion::default() };
    check_output(&object, "text/plain", b"hi", &both(r#"{"result":"hi"}"#, r#"{"result":"hi"}"#));
    check_output(&object, "application/json", b"[1.0]", &both("[1.0]", "[1.0]"));
    let other = ResponseConversion { form: OutputForm::Other, ..ResponseConversion::default() };
    check_output(&other, "text/plain", b"hi", &both("hi", r#""hi""#));
    check_output(&other, "application/json", br#""hi""#, &both("hi", r#""hi""#));
    check_output(&other, "application/json", b"[1.0]", &both("[1.0]", "[1.0]"));
    check_output(&other, "application/json", b"", &both("200 OK", r#""200 OK""#));
}

#[test]
fn results_are_redacted_then_mapped() {
    let redact =
        ResponseConversion { redact: vec!["token".into(), "nope".into()], ..ResponseConversion::default() };
    let hidden = r#"{"token":"[REDACTED]","a":1.0}"#;
    check_output(&redact, "application/json", br#"{"token": {"x":1}, "a": 1.0}"#, &both(hidden, hidden));
    check_output(
        &redact,
        "application/json",
        br#"{"a": {"token":1}}"#,
        &both(r#"{"a": {"token":1}}"#, r#"{"a": {"token":1}}"#),
    );
    let twice = br#"{"token":1,"tok\u0065n":2}"#;
    check_output(
        &redact,
        "a/b",
        twice,
        "execution_failed: The response has a duplicate member and cannot be redacted",
    );

    let mapping = |text| ResponseConversion { mapping: Some(mapping(text)), ..redact.clone() };
    check_output(&mapping("token"), "a/b", br#"{"token":"s3cret"}"#, &text("[REDACTED]"));
    check_output(
        &mapping("{n: items[].name}"),
        "a/b",
        br#"{"items":[{"name":"x"}]}"#,
        &both(r#"{"n":["x"]}"#, r#"{"n":["x"]}"#),
    );
    check_output(&mapping("items[0].name"), "a/b", br#"{"items":[{"name":"x"}]}"#, &text("x"));
    check_output(&mapping("nothing"), "a/b", b"{}", &text("null"));
    check_output(&mapping("result"), "text/plain", b"plain", &text("plain"));
    check_output(
        &mapping("abs(result)"),
        "text/plain",
        b"plain",
        "execution_failed: A mapping of this tool does not fit the data",
    );
}

#[test]
fn error_results_have_an_excerpt_of_the_body() {
    #[track_caller]
    fn check(reading: &ResponseConversion, status: u16, body: &str, whole: bool, expect: &str) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let output = reading.failure("", StatusCode::from_u16(status).unwrap(), &body, whole);
        assert!(output.is_error);
        assert_eq!(output.body, CallOutput::failure(expect).body, "{:?}", output.body.to_json().as_text());
    }
    let plain = ResponseConversion::default();
    check(&plain, 404, "no such user", true, "HTTP 404 Not Found: no such user");
    check(&plain, 599, "", true, "HTTP 599");
    check(&plain, 302, "", true, "HTTP 302 Found (redirects are not followed)");
    let long = "x".repeat(511) + "é" + "y";
    check(&plain, 500, &long, false, &format!("HTTP 500 Internal Server Error: {}", "x".repeat(511)));
    let redact = ResponseConversion { redact: vec!["token".into()], ..ResponseConversion::default() };
    check(&redact, 400, r#"{"token":"s3cret"}"#, true, r#"HTTP 400 Bad Request: {"token":"[REDACTED]"}"#);
    check(&redact, 400, r#"{"token":"s3cret"}"#, false, "HTTP 400 Bad Request");
    check(&redact, 400, r#"{"token":"s3cret""#, true, "HTTP 400 Bad Request");
}

fn mapping(expression: &str) -> mapping::JmesPathMapping {
    mapping::JmesPathMapping::new(jmespath::compile(expression).unwrap(), 1 << 20)
}
