//! Requests, each in one line.

use http::Method;

use super::*;
use crate::operation::{Body, Content, Form, Parameter, Part, PartKind, Style, Styled, XmlShape};

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

fn post(media_type: &str, kind: BodyKind, content: Content) -> Operation {
    let body = Body { media_type: media_type.into(), kind, content, required: false };
    Operation { body: Some(body), ..operation(Method::POST, "/x") }
}

fn members(named: &[(&str, &str)], open: bool) -> Content {
    let named = named.iter().map(|(argument, member)| ((*argument).into(), (*member).into())).collect();
    Content::Members { named, open }
}

fn argument() -> Content {
    Content::Argument("body".into())
}

fn part(name: &str, kind: PartKind) -> Part {
    Part { name: name.into(), kind, media_type: None, styled: None }
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

#[test]
fn bodies_of_json() {
    let text = r#"{"n": 1.10, "big":12345678901234567890123,  "a":[ ]}"#;
    let whole = post("application/json", BodyKind::Json, argument());
    let sent = "POST https://a.example/v1/x content-type: application/json";
    check(&whole, &format!(r#"{{"body": {text}}}"#), &format!("{sent} {text}"));
    check(&whole, "", "POST https://a.example/v1/x");
    check(&whole, r#"{"body":null}"#, "POST https://a.example/v1/x");
    let mut required = whole.clone();
    required.body.as_mut().unwrap().required = true;
    check(&required, r#"{"body":null}"#, &format!("{sent} null"));
    check(&required, "{}", "invalid_arguments: Invalid arguments: /body: it is missing");

    let flat = post("application/*", BodyKind::Json, members(&[("body_id", "id"), ("name", "name")], false));
    let flat = with(&flat, [parameter("id", Location::Query)]);
    let expect = r#"POST https://a.example/v1/x?id=1 content-type: application/json {"name":null,"id":2.0}"#;
    check(&flat, r#"{"id":1,"name":null,"body_id":2.0,"other":3}"#, expect);
    check(&flat, r#"{"other":3}"#, "POST https://a.example/v1/x");
    let open = post("application/vnd.a+json", BodyKind::Json, members(&[("body_id", "id")], true));
    let open = with(&open, [parameter("q", Location::Query)]);
    let expect = r#"POST https://a.example/v1/x?q=1 content-type: application/vnd.a+json {"z":1e2,"id":2}"#;
    check(&open, r#"{"q":1,"z":1e2,"body_id":2,"id":"not this"}"#, expect);
    let mut required = open;
    required.body.as_mut().unwrap().required = true;
    check(&required, "", "POST https://a.example/v1/x content-type: application/vnd.a+json {}");
}

#[test]
fn a_body_is_called_what_it_is() {
    let with_type = |operation: &Operation| with(operation, [parameter("Content-Type", Location::Header)]);
    let json = with_type(&post("application/json", BodyKind::Json, argument()));
    let body = |said: &str| format!(r#"{{"body":1,"Content-Type":"{said}"}}"#);
    check(
        &json,
        &body("application/merge-patch+json"),
        "POST https://a.example/v1/x content-type: application/merge-patch+json 1",
    );
    check(&json, &body("text/csv"), "POST https://a.example/v1/x content-type: application/json 1");
    let text = with_type(&post("*/*", BodyKind::Text, argument()));
    check(&text, &body("text/csv"), "POST https://a.example/v1/x content-type: text/csv 1");
    check(&text, r#"{"body":"é"}"#, "POST https://a.example/v1/x content-type: text/plain; charset=utf-8 é");
    let bytes = post("*/*", BodyKind::Bytes, argument());
    check(
        &bytes,
        r#"{"body":"aGk="}"#,
        "POST https://a.example/v1/x content-type: application/octet-stream hi",
    );
    check(
        &bytes,
        r#"{"body":"data:image/png;base64,aGk="}"#,
        "POST https://a.example/v1/x content-type: image/png hi",
    );
    check(&bytes, r#"{"body":"hi!"}"#, "invalid_arguments: Invalid arguments: /body: it is not base64");
}

#[test]
fn forms() {
    let styled = |style, explode| Some(Styled { style, explode, allow_reserved: false });
    let parts = vec![
        Part { styled: styled(Style::DeepObject, true), ..part("deep", PartKind::Json) },
        Part { styled: styled(Style::PipeDelimited, false), ..part("pipes", PartKind::Text) },
        Part { styled: styled(Style::Form, true), ..part("spread", PartKind::Json) },
    ];
    let form = post("application/x-www-form-urlencoded", BodyKind::Form(parts), members(&[], true));
    let sent = "POST https://a.example/v1/x content-type: application/x-www-form-urlencoded";
    check(
        &form,
        r#"{"id":"a+b c","n":1.10,"address":{"zip":"9+1"},"l":["x",null,{"y":1}],"none":null,"e":[]}"#,
        &format!("{sent} id=a%2Bb%20c&n=1.10&address=%7B%22zip%22%3A%229%2B1%22%7D&l=x&l=%7B%22y%22%3A1%7D"),
    );
    check(
        &form,
        r#"{"deep":{"a":[{"b":1}]},"pipes":["x","y"],"spread":{"p":1,"q":["r","s"]},"z":{}}"#,
        &format!("{sent} deep%5Ba%5D%5B0%5D%5Bb%5D=1&pipes=x%7Cy&p=1&q=r&q=s&z=%7B%7D"),
    );
    let whole = post("application/x-www-form-urlencoded", BodyKind::Form(Vec::new()), argument());
    check(&whole, r#"{"body":{"a":"b c"}}"#, &format!("{sent} a=b%20c"));
    check(&whole, r#"{"body":"a=b+c&d=é"}"#, &format!("{sent} a=b+c&d=%C3%A9"));
    check(
        &whole,
        r#"{"body":[1]}"#,
        "invalid_arguments: Invalid arguments: /body: expected an object at byte 0",
    );
}

#[test]
fn multipart() {
    let parts = vec![
        part("file", PartKind::File),
        Part { media_type: Some("image/*, image/gif".into()), ..part("images", PartKind::File) },
        part("meta", PartKind::Json),
        Part { media_type: Some("application/xml".into()), ..part("xml", PartKind::Text) },
    ];
    let form =
        post("multipart/form-data", BodyKind::Multipart(parts), members(&[("the_file", "file")], true));
    let sent = "POST https://a.example/v1/x content-type: multipart/form-data; boundary=toolyard-";
    let disposition = "Content-Disposition: form-data; name=";
    let boundary = "--toolyard-0000000000000000";
    check(
        &form,
        r#"{"the_file":"aGk=","meta":{"a": 1.0},"n":1.10,"x\"\r\n":"y","none":null,"xml":"<a/>"}"#,
        &format!(
            "{sent}0000000000000000 {boundary}|{disposition}\"file\"; filename=\"file\"|Content-Type: application/octet-stream||hi\
             |{boundary}|{disposition}\"meta\"|Content-Type: application/json||{{\"a\": 1.0}}\
             |{boundary}|{disposition}\"n\"||1.10|{boundary}|{disposition}\"x%22%0D%0A\"||y\
             |{boundary}|{disposition}\"xml\"|Content-Type: application/xml||<a/>|{boundary}--"
        ),
    );
    check(
        &form,
        r#"{"images":["aGk=","data:image/png;name=my.png;base64,aG8="],"l":["a",{"b":1}]}"#,
        &format!(
            "{sent}0000000000000000 {boundary}|{disposition}\"images\"; filename=\"images.gif\"|Content-Type: image/gif||hi\
             |{boundary}|{disposition}\"images\"; filename=\"my.png\"|Content-Type: image/png||ho\
             |{boundary}|{disposition}\"l\"||a|{boundary}|{disposition}\"l\"|Content-Type: application/json||{{\"b\":1}}|{boundary}--"
        ),
    );
    let taken = shown(&form, r#"{"n":"toolyard-0000000000000000 toolyard-0000000000000001"}"#);
    assert!(taken.starts_with(&format!("{sent}0000000000000002 ")), "{taken}");
    check(&form, r#"{"the_file":"?"}"#, "invalid_arguments: Invalid arguments: /the_file: it is not base64");
    check(
        &form,
        r#"{"images":["aGk=",1]}"#,
        "invalid_arguments: Invalid arguments: /images/1: a file is a text in base64",
    );
}

/// Short items below a long name stand for more than any memory has.
#[test]
fn what_is_repeated_is_bounded() {
    let name = "n".repeat(100_000);
    let arguments = format!(r#"{{"{name}":[{}1]}}"#, "1,".repeat(100_000));
    let too_long = "invalid_arguments: Invalid arguments: they make a request that is too long";
    let all = members(&[], true);
    check(&post("a/b", BodyKind::Form(Vec::new()), all.clone()), &arguments, too_long);
    check(&post("a/b", BodyKind::Multipart(Vec::new()), all.clone()), &arguments, too_long);
    check(&post("a/b", BodyKind::Xml(Box::default()), all), &arguments, too_long);
    let form = Form::Styled(Styled { style: Style::DeepObject, explode: true, allow_reserved: false });
    let deep = with(&operation(Method::GET, "/"), [Parameter { form, ..parameter("q", Location::Query) }]);
    check(&deep, &format!(r#"{{"q":{arguments}}}"#), too_long);
}

#[test]
fn xml() {
    let named = |name: &str| XmlShape { name: Some(name.into()), ..XmlShape::default() };
    let array = |wrapped, name: Option<&str>, items: Option<&str>| XmlShape {
        name: name.map(Into::into),
        wrapped,
        items: items.map(|name| Box::new(named(name))),
        ..XmlShape::default()
    };
    let sent = "POST https://a.example/v1/x content-type: application/xml";
    let declaration = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
    #[track_caller]
    fn check_xml(shape: XmlShape, arguments: &str, expect: &str) {
        check(
            &post("application/xml", BodyKind::Xml(Box::new(shape)), Content::Argument("body".into())),
            arguments,
            expect,
        );
    }
    // OpenAPI 3.1.1, section 4.8.26.2, in the same order.
    let animals = |shape: XmlShape| XmlShape { members: vec![("animals".into(), shape)], ..named("r") };
    for (shape, value, expect) in [
        (XmlShape::default(), r#""..""#, "<animals>..</animals>"),
        (array(false, None, None), "[1,2]", "<animals>1</animals><animals>2</animals>"),
        (named("animal"), r#""..""#, "<animal>..</animal>"),
        (array(false, None, Some("animal")), "[1,2]", "<animal>1</animal><animal>2</animal>"),
        (array(false, Some("aliens"), Some("animal")), "[1,2]", "<animal>1</animal><animal>2</animal>"),
        (array(true, None, None), "[1,2]", "<animals><animals>1</animals><animals>2</animals></animals>"),
        (array(true, None, Some("animal")), "[1]", "<animals><animal>1</animal></animals>"),
        (array(true, Some("aliens"), Some("animal")), "[1]", "<aliens><animal>1</animal></aliens>"),
        (array(true, Some("aliens"), None), "[1]", "<aliens><aliens>1</aliens></aliens>"),
    ] {
        let arguments = format!(r#"{{"body":{{"animals":{value}}}}}"#);
        check_xml(animals(shape), &arguments, &format!("{sent} {declaration}<r>{expect}</r>"));
    }
    let sample = XmlShape {
        namespace: Some("https://example.com/schema/sample".into()),
        prefix: Some("sample".into()),
        ..XmlShape::default()
    };
    let id = XmlShape { attribute: true, ..XmlShape::default() };
    let person =
        XmlShape { members: vec![("id".into(), id), ("name".into(), sample.clone())], ..named("Person") };
    let expect = r#"<Person id="1&quot;2"><sample:name xmlns:sample="https://example.com/schema/sample">a&lt;b&gt;&amp;&#10;</sample:name><more>1.0</more></Person>"#;
    check_xml(
        person.clone(),
        r#"{"body":{"more":1.0,"name":"a<b>&\n","id":"1\"2","none":null}}"#,
        &format!("{sent} {declaration}{expect}"),
    );
    let root = XmlShape { name: Some("pets".into()), prefix: None, ..sample };
    check_xml(
        root,
        r#"{"body":{}}"#,
        &format!(r#"{sent} {declaration}<pets xmlns="https://example.com/schema/sample"></pets>"#),
    );
    check_xml(
        array(false, Some("pets"), Some("pet")),
        r#"{"body":[{"a":1},2]}"#,
        &format!("{sent} {declaration}<pets><pet><a>1</a></pet><pet>2</pet></pets>"),
    );
    check_xml(person, r#"{"body":"<Person/>"}"#, &format!("{sent} <Person/>"));
    check_xml(XmlShape::default(), r#"{"body":"a"}"#, &format!("{sent} {declaration}<root>a</root>"));
    let no_name = r#"invalid_arguments: Invalid arguments: /body: "a><b" is no name in XML"#;
    check_xml(XmlShape::default(), r#"{"body":{"a><b":1}}"#, no_name);
    let control = r"invalid_arguments: Invalid arguments: /body: '\u{1}' cannot stand in XML";
    check_xml(XmlShape::default(), r#"{"body":{"a":"\u0001"}}"#, control);
}
