//! Bodies, each with its request.

use super::*;
use crate::operation::{FormPart, PartKind, XmlShape};

fn post(media_type: &str, kind: BodyKind, content: BodyContent) -> OpenApiOperation {
    let body = RequestBody { media_type: media_type.into(), kind, content, required: false };
    OpenApiOperation { body: Some(body), ..operation(Method::POST, "/x") }
}

fn members(named: &[(&str, &str)], open: bool) -> BodyContent {
    let named = named.iter().map(|(argument, member)| ((*argument).into(), (*member).into())).collect();
    BodyContent::Members { named, accepts_others: open }
}

fn argument() -> BodyContent {
    BodyContent::Argument("body".into())
}

fn part(name: &str, kind: PartKind) -> FormPart {
    FormPart { name: name.into(), kind, media_type: None, styled: None }
}

#[test]
fn json_bodies() {
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
    let flat = with(&flat, [parameter("id", ParameterLocation::Query)]);
    let expect = r#"POST https://a.example/v1/x?id=1 content-type: application/json {"name":null,"id":2.0}"#;
    check(&flat, r#"{"id":1,"name":null,"body_id":2.0,"other":3}"#, expect);
    check(&flat, r#"{"other":3}"#, "POST https://a.example/v1/x");
    let open = post("application/vnd.a+json", BodyKind::Json, members(&[("body_id", "id")], true));
    let open = with(&open, [parameter("q", ParameterLocation::Query)]);
    let expect = r#"POST https://a.example/v1/x?q=1 content-type: application/vnd.a+json {"z":1e2,"id":2}"#;
    check(&open, r#"{"q":1,"z":1e2,"body_id":2,"id":"not this"}"#, expect);
    let mut required = open;
    required.body.as_mut().unwrap().required = true;
    check(&required, "", "POST https://a.example/v1/x content-type: application/vnd.a+json {}");
}

#[test]
fn content_type_matches_the_body() {
    let with_type = |operation: &OpenApiOperation| {
        with(operation, [parameter("Content-Type", ParameterLocation::Header)])
    };
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
    let styled = |style, explode| Some(StyleOptions { style, explode, allow_reserved: false });
    let parts = vec![
        FormPart { styled: styled(ParameterStyle::DeepObject, true), ..part("deep", PartKind::Json) },
        FormPart { styled: styled(ParameterStyle::PipeDelimited, false), ..part("pipes", PartKind::Text) },
        FormPart { styled: styled(ParameterStyle::Form, true), ..part("spread", PartKind::Json) },
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
    let json = FormPart { media_type: Some("application/json".into()), ..part("id", PartKind::Json) };
    let quoted = post("application/x-www-form-urlencoded", BodyKind::Form(vec![json]), argument());
    check(&quoted, r#"{"body":{"id":"f81","other":"f81"}}"#, &format!("{sent} id=%22f81%22&other=f81"));
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
        FormPart { media_type: Some("image/*, image/gif".into()), ..part("images", PartKind::File) },
        part("meta", PartKind::Json),
        FormPart { media_type: Some("application/xml".into()), ..part("xml", PartKind::Text) },
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
    let colliding = request_line(&form, r#"{"n":"toolyard-0000000000000000 toolyard-0000000000000001"}"#);
    assert!(colliding.starts_with(&format!("{sent}0000000000000002 ")), "{colliding}");
    check(&form, r#"{"the_file":"?"}"#, "invalid_arguments: Invalid arguments: /the_file: it is not base64");
    check(
        &form,
        r#"{"images":["aGk=",1]}"#,
        "invalid_arguments: Invalid arguments: /images/1: a file must be a string in base64",
    );
}

#[test]
fn multipart_in_styles() {
    let deep = StyleOptions { style: ParameterStyle::DeepObject, explode: true, allow_reserved: false };
    let parts = vec![
        part("file", PartKind::File),
        FormPart { styled: Some(deep), ..part("deep", PartKind::Json) },
        FormPart {
            styled: Some(StyleOptions { style: ParameterStyle::PipeDelimited, explode: false, ..deep }),
            ..part("l", PartKind::Text)
        },
    ];
    let form = post("multipart/*", BodyKind::Multipart(parts), argument());
    let boundary = "--toolyard-0000000000000000";
    let disposition = "Content-Disposition: form-data; name=";
    check(
        &form,
        r#"{"body":{"deep":{"a b":"c d&"},"l":["x y","z"],"none":null}}"#,
        &format!(
            "POST https://a.example/v1/x content-type: multipart/form-data; boundary={} \
             {boundary}|{disposition}\"deep[a b]\"||c d&|{boundary}|{disposition}\"l\"||x y|z|{boundary}--",
            &boundary[2..]
        ),
    );
    check(
        &form,
        r#"{"body":{"file":1}}"#,
        "invalid_arguments: Invalid arguments: /body/file: a file must be a string in base64",
    );
}

/// Short items below a long name expand to more than any memory holds.
#[test]
fn repeated_names_are_limited() {
    let name = "n".repeat(100_000);
    let arguments = format!(r#"{{"{name}":[{}1]}}"#, "1,".repeat(100_000));
    let too_long = "invalid_arguments: Invalid arguments: the request would be too long";
    let all = members(&[], true);
    check(&post("a/b", BodyKind::Form(Vec::new()), all.clone()), &arguments, too_long);
    check(&post("a/b", BodyKind::Multipart(Vec::new()), all.clone()), &arguments, too_long);
    check(&post("a/b", BodyKind::Xml(Box::default()), all), &arguments, too_long);
    let form = ValueEncoding::Styled(StyleOptions {
        style: ParameterStyle::DeepObject,
        explode: true,
        allow_reserved: false,
    });
    let deep = with(
        &operation(Method::GET, "/"),
        [OperationParameter { encoding: form, ..parameter("q", ParameterLocation::Query) }],
    );
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
            &post("application/xml", BodyKind::Xml(Box::new(shape)), BodyContent::Argument("body".into())),
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
    let no_name = r#"invalid_arguments: Invalid arguments: /body: "a><b" is not a valid XML name"#;
    check_xml(XmlShape::default(), r#"{"body":{"a><b":1}}"#, no_name);
    let control = r"invalid_arguments: Invalid arguments: /body: '\u{1}' is not permitted in XML";
    check_xml(XmlShape::default(), r#"{"body":{"a":"\u0001"}}"#, control);
}
