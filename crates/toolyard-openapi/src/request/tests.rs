//! Requests, each in one line.

use http::Method;

use super::*;
use crate::operation::{
    BodyContent, OperationParameter, ParameterStyle, RequestBody, StyleOptions, ValueEncoding,
};

mod bodies;

fn operation(method: Method, path: &str) -> OpenApiOperation {
    OpenApiOperation {
        name: "it".into(),
        method,
        server: "https://a.example/v1".into(),
        path: path.into(),
        parameters: Vec::new(),
        body: None,
        accept: vec!["application/json".into()],
    }
}

fn parameter(name: &str, location: ParameterLocation) -> OperationParameter {
    let (style, explode) = match location {
        ParameterLocation::Path | ParameterLocation::Header => (ParameterStyle::Simple, false),
        ParameterLocation::Query | ParameterLocation::QueryString | ParameterLocation::Cookie => {
            (ParameterStyle::Form, true)
        }
    };
    let form = ValueEncoding::Styled(StyleOptions { style, explode, allow_reserved: false });
    OperationParameter { argument: name.into(), name: name.into(), location, encoding: form, required: false }
}

fn with(
    operation: &OpenApiOperation,
    parameters: impl IntoIterator<Item = OperationParameter>,
) -> OpenApiOperation {
    OpenApiOperation { parameters: parameters.into_iter().collect(), ..operation.clone() }
}

/// Method, URL, headers that are not on every request, and body; or the error.
fn request_line(operation: &OpenApiOperation, arguments: &str) -> String {
    let arguments = (!arguments.is_empty()).then(|| Json::parse(arguments.to_owned()).unwrap());
    let request = match operation.request(arguments.as_ref(), None) {
        Ok(request) => request,
        Err(error) => return format!("{}: {error}", error.code().row().wire),
    };
    let (head, body) = request.into_parts();
    let mut line = format!("{} {}", head.method, head.uri);
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != header::USER_AGENT) {
        if (name, value.as_bytes()) != (&header::ACCEPT, b"application/json, */*;q=0.1") {
            line.push_str(&format!(" {name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
    }
    format!("{line} {}", String::from_utf8_lossy(&body)).trim_end().replace("\r\n", "|")
}

#[track_caller]
fn check(operation: &OpenApiOperation, arguments: &str, expect: &str) {
    assert_eq!(request_line(operation, arguments), expect, "{arguments}");
}

#[test]
fn each_argument_is_used_once() {
    let get = operation(Method::GET, "/pets/{id}.json?fixed=1#part");
    let get = with(
        &get,
        [
            parameter("id", ParameterLocation::Path),
            OperationParameter { argument: "query_id".into(), ..parameter("id", ParameterLocation::Query) },
            parameter("tags", ParameterLocation::Query),
            parameter("X-Tenant", ParameterLocation::Header),
            parameter("Accept", ParameterLocation::Header),
            parameter("session", ParameterLocation::Cookie),
            parameter("theme", ParameterLocation::Cookie),
        ],
    );
    check(&get, r#"{"id":7}"#, "GET https://a.example/v1/pets/7.json?fixed=1");
    check(
        &get,
        r#"{"id":"a/b","query_id":1.10,"tags":["x","y z"],"X-Tenant":"t, ü","session":"s;p","theme":"dark","other":1}"#,
        "GET https://a.example/v1/pets/a%2Fb.json?fixed=1&id=1.10&tags=x&tags=y%20z x-tenant: t, ü cookie: session=s%3Bp; theme=dark",
    );
    check(
        &get,
        r#"{"id":7,"Accept":"text/csv"}"#,
        "GET https://a.example/v1/pets/7.json?fixed=1 accept: text/csv",
    );
    check(&get, "", "invalid_arguments: Invalid arguments: /id: it is missing");
    check(&get, "[]", "invalid_arguments: Invalid arguments: expected an object at byte 0");
    let twice = r#"{"id":{"a":1,"a":2}}"#;
    check(
        &get,
        twice,
        "invalid_arguments: Invalid arguments: /id: a member is named twice in the object at byte 0",
    );
}

#[test]
fn optional_undefined_values_are_omitted() {
    let all = [ParameterLocation::Query, ParameterLocation::Header, ParameterLocation::Cookie]
        .map(|location| parameter("n", location));
    for optional in all {
        let required =
            with(&operation(Method::GET, "/"), [OperationParameter { required: true, ..optional.clone() }]);
        let optional = with(&operation(Method::GET, "/"), [optional]);
        let bare = "GET https://a.example/v1/";
        let expected = ["?n=", " n:", " cookie: n="];
        for nothing in ["null", "[]", "{}"] {
            check(&optional, &format!(r#"{{"n":{nothing}}}"#), bare);
            let seen = request_line(&required, &format!(r#"{{"n":{nothing}}}"#));
            assert!(expected.iter().any(|end| seen == format!("{bare}{end}")), "{seen}");
        }
        assert_ne!(request_line(&optional, r#"{"n":""}"#), bare, "the empty string is something");
    }
}

#[test]
fn path_traversal_is_refused() {
    let get = with(&operation(Method::GET, "/v/{x}/z"), [parameter("x", ParameterLocation::Path)]);
    check(&get, r#"{"x":"a/b?#.."}"#, "GET https://a.example/v1/v/a%2Fb%3F%23../z");
    check(&get, r#"{"x":["a","b;=c"]}"#, "GET https://a.example/v1/v/a,b%3B%3Dc/z");
    check(&get, r#"{"x":"%2e%2e"}"#, "GET https://a.example/v1/v/%252e%252e/z");
    for climbing in [".", "..", "../x", "a/../..", r"..\\a", "..;x", "/./"] {
        let refused = "invalid_arguments: Invalid arguments: /x: it would change the path of the request";
        check(&get, &format!(r#"{{"x":"{climbing}"}}"#), refused);
    }
    for empty in [r#""""#, "null", "[]"] {
        check(&get, &format!(r#"{{"x":{empty}}}"#), "invalid_arguments: Invalid arguments: /x: it is empty");
    }
    let styled = |style| ValueEncoding::Styled(StyleOptions { style, explode: true, allow_reserved: true });
    let of = |style| {
        let parameter =
            OperationParameter { encoding: styled(style), ..parameter("x", ParameterLocation::Path) };
        with(&operation(Method::GET, "/v/{x}"), [parameter])
    };
    check(&of(ParameterStyle::Label), r#"{"x":["a/","b"]}"#, "GET https://a.example/v1/v/.a%2F.b");
    check(&of(ParameterStyle::Matrix), r#"{"x":{"k":"/v"}}"#, "GET https://a.example/v1/v/;k=%2Fv");
    check(&of(ParameterStyle::Matrix), r#"{"x":null}"#, "GET https://a.example/v1/v/;x");
    for dots in [r#""""#, r#"".""#, "[]", r#"["",""]"#] {
        let refused = "invalid_arguments: Invalid arguments: /x: it would change the path of the request";
        check(&of(ParameterStyle::Label), &format!(r#"{{"x":{dots}}}"#), refused);
    }
}

#[test]
fn unusual_path_templates() {
    let path = |text| with(&operation(Method::GET, text), [parameter("x", ParameterLocation::Path)]);
    check(&path("/{x}/{x}:run"), r#"{"x":"a"}"#, "GET https://a.example/v1/a/a:run");
    check(&path("/{+x}/{x*}{?y,z}"), r#"{"x":"a/b"}"#, "GET https://a.example/v1/a%2Fb/a%2Fb");
    check(&path("/é b/{x"), r#"{"x":"a"}"#, "GET https://a.example/v1/%C3%A9%20b/%7Bx");
    check(&path("no/slash/{x}"), r#"{"x":"a"}"#, "GET https://a.example/v1/no/slash/a");
    check(&path("/a?q={x}&r"), r#"{"x":".."}"#, "GET https://a.example/v1/a?q=..&r");
    check(&path("/{y}"), r#"{"y":"undeclared"}"#, "GET https://a.example/v1/undeclared");
    let content = OperationParameter {
        encoding: ValueEncoding::Content("application/json".into()),
        ..parameter("x", ParameterLocation::Path)
    };
    let json = with(&operation(Method::GET, "/{x}"), [content]);
    check(&json, r#"{"x":{"a":"b"}}"#, "GET https://a.example/v1/%7B%22a%22%3A%22b%22%7D");
}

#[test]
fn base_url_precedes_the_path() {
    let at = |path: &str, base: Option<&str>| match operation(Method::GET, path).request(None, base) {
        Ok(request) => request.uri().to_string(),
        Err(error) => format!("{}: {error}", error.code().row().wire),
    };
    for base in ["http://b.example:81/api", "http://b.example:81/api/", "http://b.example:81/api//#x"] {
        assert_eq!(at("/x", Some(base)), "http://b.example:81/api/x");
    }
    assert_eq!(at("/x/", Some("http://b.example")), "http://b.example/x/");
    assert_eq!(at("", Some("http://b.example/api")), "http://b.example/api");
    assert_eq!(at("//evil.example/x", Some("http://b.example")), "http://b.example/evil.example/x");
    assert_eq!(at("@evil.example", Some("http://b.example")), "http://b.example/@evil.example");
    assert_eq!(at("/x?a=1", Some("http://b.example/?key=k")), "http://b.example/x?key=k&a=1");
    let unknown =
        "unavailable: The server of this tool is unknown: its OpenAPI description has no absolute server URL";
    for base in ["/v1", "", "b.example", "mailto:x", "http://{host}/"] {
        assert_eq!(at("/x", Some(base)), unknown, "{base}");
    }
}

#[test]
fn queries() {
    let content = |media_type: &str, location| OperationParameter {
        encoding: ValueEncoding::Content(media_type.into()),
        ..parameter("q", location)
    };
    let get = |parameter| with(&operation(Method::GET, "/"), [parameter]);
    let json = get(content("application/json", ParameterLocation::Query));
    check(&json, r#"{"q":{"a": 1.0}}"#, "GET https://a.example/v1/?q=%7B%22a%22%3A%201.0%7D");
    check(&json, r#"{"q":"a"}"#, "GET https://a.example/v1/?q=%22a%22");
    check(
        &get(content("text/plain", ParameterLocation::Query)),
        r#"{"q":"a b"}"#,
        "GET https://a.example/v1/?q=a%20b",
    );
    // The examples of OpenAPI 3.2, section 4.12.4.
    let form = get(content("application/x-www-form-urlencoded", ParameterLocation::QueryString));
    check(&form, r#"{"q":{"foo":"a + b","bar":true}}"#, "GET https://a.example/v1/?foo=a%20%2B%20b&bar=true");
    check(&form, r#"{"q":"foo=a+b#c"}"#, "GET https://a.example/v1/?foo=a+b%23c");
    check(
        &form,
        r#"{"q":[1]}"#,
        "invalid_arguments: Invalid arguments: /q: it is neither an object nor a string",
    );
    let json = get(content("application/json", ParameterLocation::QueryString));
    let expect = "GET https://a.example/v1/?%7B%22numbers%22%3A%5B1%2C2%5D%2C%22flag%22%3Anull%7D";
    check(&json, r#"{"q":{"numbers":[1,2],"flag":null}}"#, expect);
    let behind =
        with(&operation(Method::GET, "/?v=2"), [content("text/plain", ParameterLocation::QueryString)]);
    check(&behind, r#"{"q":"a b"}"#, "GET https://a.example/v1/?v=2&a%20b");
    let path = get(content("application/jsonpath", ParameterLocation::QueryString));
    check(&path, r#"{"q":"$.a.b[1:1]"}"#, "GET https://a.example/v1/?%24.a.b%5B1%3A1%5D");
    let long = get(parameter("q", ParameterLocation::Query));
    let too_long = "invalid_arguments: Invalid arguments: the request would be too long";
    check(&long, &format!(r#"{{"q":"{}"}}"#, "x".repeat(70_000)), too_long);
}

#[test]
fn headers_and_cookies() {
    let get = |parameter| with(&operation(Method::GET, "/"), [parameter]);
    let header = get(parameter("X-Y", ParameterLocation::Header));
    check(&header, r#"{"X-Y":["a b","1%"]}"#, "GET https://a.example/v1/ x-y: a b,1%");
    check(
        &header,
        r#"{"X-Y":"a\r\nb: c"}"#,
        "invalid_arguments: Invalid arguments: /X-Y: it is not a valid header value",
    );
    let no_name =
        "invalid_arguments: Invalid arguments: /a b: the OpenAPI description gives it an invalid header name";
    check(&get(parameter("a b", ParameterLocation::Header)), r#"{"a b":1}"#, no_name);
    for name in ["Host", "content-length", "Transfer-Encoding", "Content-Type"] {
        check(
            &get(parameter(name, ParameterLocation::Header)),
            &format!(r#"{{"{name}":"x"}}"#),
            "GET https://a.example/v1/",
        );
    }
    check(
        &get(parameter("Authorization", ParameterLocation::Header)),
        r#"{"Authorization":"x"}"#,
        "GET https://a.example/v1/ authorization: x",
    );

    let styled = ValueEncoding::Styled(StyleOptions {
        style: ParameterStyle::Cookie,
        explode: true,
        allow_reserved: false,
    });
    let cookie = get(OperationParameter { encoding: styled, ..parameter("c", ParameterLocation::Cookie) });
    let greeting = r#"{"c":{"greeting":"Hello%2C world!","code":42}}"#;
    check(&cookie, greeting, "GET https://a.example/v1/ cookie: greeting=Hello%2C world!; code=42");
    let refused = "invalid_arguments: Invalid arguments: /c: it is not a valid cookie value";
    for escaping in [r#""a; admin=1""#, r#"{"a=1; b":2}"#, r#""a\nb""#] {
        check(&cookie, &format!(r#"{{"c":{escaping}}}"#), refused);
    }
    let json = OperationParameter {
        encoding: ValueEncoding::Content("application/json".into()),
        ..parameter("c", ParameterLocation::Cookie)
    };
    check(&get(json), r#"{"c":["a;"]}"#, "GET https://a.example/v1/ cookie: c=%5B%22a%3B%22%5D");
}

#[test]
fn accept_header() {
    let of = |types: &[&str]| accept(&types.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
    assert_eq!(of(&[]), "application/json, */*;q=0.5");
    assert_eq!(of(&["text/csv"]), "text/csv, */*;q=0.1");
    assert_eq!(of(&["a/b", "a/c", "*/*"]), "a/b, a/c;q=0.8, */*;q=0.7");
    assert!(of(&["a/b"; 12]).ends_with("a/b;q=0.2, */*;q=0.1"));
}
