//! Requests, each in one line.

use http::Method;

use super::*;
use crate::operation::{Body, Content, Form, Parameter, Style, Styled};

mod bodies;

fn operation(method: Method, path: &str) -> Operation {
    Operation {
        name: "it".into(),
        method,
        server: "https://a.example/v1".into(),
        path: path.into(),
        parameters: Vec::new(),
        body: None,
        accept: vec!["application/json".into()],
    }
}

fn parameter(name: &str, location: Location) -> Parameter {
    let (style, explode) = match location {
        Location::Path | Location::Header => (Style::Simple, false),
        Location::Query | Location::QueryString | Location::Cookie => (Style::Form, true),
    };
    let form = Form::Styled(Styled { style, explode, allow_reserved: false });
    Parameter { argument: name.into(), name: name.into(), location, form, required: false }
}

fn with(operation: &Operation, parameters: impl IntoIterator<Item = Parameter>) -> Operation {
    Operation { parameters: parameters.into_iter().collect(), ..operation.clone() }
}

/// Method, URL, headers that are not on every request, and body. Or why there is none.
fn shown(operation: &Operation, arguments: &str) -> String {
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
fn check(operation: &Operation, arguments: &str, expect: &str) {
    assert_eq!(shown(operation, arguments), expect, "{arguments}");
}

#[test]
fn arguments_go_to_their_places_once() {
    let get = operation(Method::GET, "/pets/{id}.json?fixed=1#part");
    let get = with(
        &get,
        [
            parameter("id", Location::Path),
            Parameter { argument: "query_id".into(), ..parameter("id", Location::Query) },
            parameter("tags", Location::Query),
            parameter("X-Tenant", Location::Header),
            parameter("Accept", Location::Header),
            parameter("session", Location::Cookie),
            parameter("theme", Location::Cookie),
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
fn nothing_is_left_out_where_it_may_be() {
    let all = [Location::Query, Location::Header, Location::Cookie].map(|location| parameter("n", location));
    for optional in all {
        let required = with(&operation(Method::GET, "/"), [Parameter { required: true, ..optional.clone() }]);
        let optional = with(&operation(Method::GET, "/"), [optional]);
        let bare = "GET https://a.example/v1/";
        let written = ["?n=", " n:", " cookie: n="];
        for nothing in ["null", "[]", "{}"] {
            check(&optional, &format!(r#"{{"n":{nothing}}}"#), bare);
            let seen = shown(&required, &format!(r#"{{"n":{nothing}}}"#));
            assert!(written.iter().any(|end| seen == format!("{bare}{end}")), "{seen}");
        }
        assert_ne!(shown(&optional, r#"{"n":""}"#), bare, "the empty string is something");
    }
}

#[test]
fn an_argument_stays_in_its_place() {
    let get = with(&operation(Method::GET, "/v/{x}/z"), [parameter("x", Location::Path)]);
    check(&get, r#"{"x":"a/b?#.."}"#, "GET https://a.example/v1/v/a%2Fb%3F%23../z");
    check(&get, r#"{"x":["a","b;=c"]}"#, "GET https://a.example/v1/v/a,b%3B%3Dc/z");
    check(&get, r#"{"x":"%2e%2e"}"#, "GET https://a.example/v1/v/%252e%252e/z");
    for climbing in [".", "..", "../x", "a/../..", r"..\\a", "..;x", "/./"] {
        let refused = "invalid_arguments: Invalid arguments: /x: it would lead out of its place in the path";
        check(&get, &format!(r#"{{"x":"{climbing}"}}"#), refused);
    }
    for empty in [r#""""#, "null", "[]"] {
        check(&get, &format!(r#"{{"x":{empty}}}"#), "invalid_arguments: Invalid arguments: /x: it is empty");
    }
    let styled = |style| Form::Styled(Styled { style, explode: true, allow_reserved: true });
    let of = |style| {
        let parameter = Parameter { form: styled(style), ..parameter("x", Location::Path) };
        with(&operation(Method::GET, "/v/{x}"), [parameter])
    };
    check(&of(Style::Label), r#"{"x":["a/","b"]}"#, "GET https://a.example/v1/v/.a%2F.b");
    check(&of(Style::Matrix), r#"{"x":{"k":"/v"}}"#, "GET https://a.example/v1/v/;k=%2Fv");
    check(&of(Style::Matrix), r#"{"x":null}"#, "GET https://a.example/v1/v/;x");
    for dots in [r#""""#, r#"".""#, "[]", r#"["",""]"#] {
        let refused = "invalid_arguments: Invalid arguments: /x: it would lead out of its place in the path";
        check(&of(Style::Label), &format!(r#"{{"x":{dots}}}"#), refused);
    }
}

#[test]
fn templates_as_documents_have_them() {
    let path = |text| with(&operation(Method::GET, text), [parameter("x", Location::Path)]);
    check(&path("/{x}/{x}:run"), r#"{"x":"a"}"#, "GET https://a.example/v1/a/a:run");
    check(&path("/{+x}/{x*}{?y,z}"), r#"{"x":"a/b"}"#, "GET https://a.example/v1/a%2Fb/a%2Fb");
    check(&path("/é b/{x"), r#"{"x":"a"}"#, "GET https://a.example/v1/%C3%A9%20b/%7Bx");
    check(&path("no/slash/{x}"), r#"{"x":"a"}"#, "GET https://a.example/v1/no/slash/a");
    check(&path("/a?q={x}&r"), r#"{"x":".."}"#, "GET https://a.example/v1/a?q=..&r");
    check(&path("/{y}"), r#"{"y":"undeclared"}"#, "GET https://a.example/v1/undeclared");
    let content =
        Parameter { form: Form::Content("application/json".into()), ..parameter("x", Location::Path) };
    let json = with(&operation(Method::GET, "/{x}"), [content]);
    check(&json, r#"{"x":{"a":"b"}}"#, "GET https://a.example/v1/%7B%22a%22%3A%22b%22%7D");
}

#[test]
fn a_base_is_put_before_the_path() {
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
        "unavailable: It is not known which server this tool is at: its document names none by a whole URL";
    for base in ["/v1", "", "b.example", "mailto:x", "http://{host}/"] {
        assert_eq!(at("/x", Some(base)), unknown, "{base}");
    }
}

#[test]
fn queries() {
    let content = |media_type: &str, location| Parameter {
        form: Form::Content(media_type.into()),
        ..parameter("q", location)
    };
    let get = |parameter| with(&operation(Method::GET, "/"), [parameter]);
    let json = get(content("application/json", Location::Query));
    check(&json, r#"{"q":{"a": 1.0}}"#, "GET https://a.example/v1/?q=%7B%22a%22%3A%201.0%7D");
    check(&json, r#"{"q":"a"}"#, "GET https://a.example/v1/?q=%22a%22");
    check(
        &get(content("text/plain", Location::Query)),
        r#"{"q":"a b"}"#,
        "GET https://a.example/v1/?q=a%20b",
    );
    // The examples of OpenAPI 3.2, section 4.12.4.
    let form = get(content("application/x-www-form-urlencoded", Location::QueryString));
    check(&form, r#"{"q":{"foo":"a + b","bar":true}}"#, "GET https://a.example/v1/?foo=a%20%2B%20b&bar=true");
    check(&form, r#"{"q":"foo=a+b#c"}"#, "GET https://a.example/v1/?foo=a+b%23c");
    check(
        &form,
        r#"{"q":[1]}"#,
        "invalid_arguments: Invalid arguments: /q: it is neither an object nor a text",
    );
    let json = get(content("application/json", Location::QueryString));
    let expect = "GET https://a.example/v1/?%7B%22numbers%22%3A%5B1%2C2%5D%2C%22flag%22%3Anull%7D";
    check(&json, r#"{"q":{"numbers":[1,2],"flag":null}}"#, expect);
    let behind = with(&operation(Method::GET, "/?v=2"), [content("text/plain", Location::QueryString)]);
    check(&behind, r#"{"q":"a b"}"#, "GET https://a.example/v1/?v=2&a%20b");
    let path = get(content("application/jsonpath", Location::QueryString));
    check(&path, r#"{"q":"$.a.b[1:1]"}"#, "GET https://a.example/v1/?%24.a.b%5B1%3A1%5D");
    let long = get(parameter("q", Location::Query));
    let too_long = "invalid_arguments: Invalid arguments: they make a request that is too long";
    check(&long, &format!(r#"{{"q":"{}"}}"#, "x".repeat(70_000)), too_long);
}

#[test]
fn headers_and_cookies() {
    let get = |parameter| with(&operation(Method::GET, "/"), [parameter]);
    let header = get(parameter("X-Y", Location::Header));
    check(&header, r#"{"X-Y":["a b","1%"]}"#, "GET https://a.example/v1/ x-y: a b,1%");
    check(
        &header,
        r#"{"X-Y":"a\r\nb: c"}"#,
        "invalid_arguments: Invalid arguments: /X-Y: it cannot stand in a header",
    );
    let no_name =
        "invalid_arguments: Invalid arguments: /a b: its document gives it a name that no header has";
    check(&get(parameter("a b", Location::Header)), r#"{"a b":1}"#, no_name);
    for name in ["Host", "content-length", "Transfer-Encoding", "Content-Type"] {
        check(
            &get(parameter(name, Location::Header)),
            &format!(r#"{{"{name}":"x"}}"#),
            "GET https://a.example/v1/",
        );
    }
    check(
        &get(parameter("Authorization", Location::Header)),
        r#"{"Authorization":"x"}"#,
        "GET https://a.example/v1/ authorization: x",
    );

    let styled = Form::Styled(Styled { style: Style::Cookie, explode: true, allow_reserved: false });
    let cookie = get(Parameter { form: styled, ..parameter("c", Location::Cookie) });
    let greeting = r#"{"c":{"greeting":"Hello%2C world!","code":42}}"#;
    check(&cookie, greeting, "GET https://a.example/v1/ cookie: greeting=Hello%2C world!; code=42");
    let refused = "invalid_arguments: Invalid arguments: /c: it cannot stand in a cookie";
    for escaping in [r#""a; admin=1""#, r#"{"a=1; b":2}"#, r#""a\nb""#] {
        check(&cookie, &format!(r#"{{"c":{escaping}}}"#), refused);
    }
    let json =
        Parameter { form: Form::Content("application/json".into()), ..parameter("c", Location::Cookie) };
    check(&get(json), r#"{"c":["a;"]}"#, "GET https://a.example/v1/ cookie: c=%5B%22a%3B%22%5D");
}

#[test]
fn accepting() {
    let of = |types: &[&str]| accept(&types.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
    assert_eq!(of(&[]), "application/json, */*;q=0.5");
    assert_eq!(of(&["text/csv"]), "text/csv, */*;q=0.1");
    assert_eq!(of(&["a/b", "a/c", "*/*"]), "a/b, a/c;q=0.8, */*;q=0.7");
    assert!(of(&["a/b"; 12]).ends_with("a/b;q=0.2, */*;q=0.1"));
}
