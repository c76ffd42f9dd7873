//! Property tests: invariants for arbitrary arguments.

use bytes::Bytes;
use http::{Method, Request};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolyard_core::Json;

use crate::OpenApiOperation;
use crate::operation::{
    BodyContent, BodyKind, FormPart, OperationParameter, ParameterLocation, ParameterStyle, PartKind,
    RequestBody, StyleOptions, ValueEncoding, XmlShape,
};

/// Strings with characters that are special in some encoding, and others.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            ".",
            "..",
            "../..",
            "/",
            "//evil.example/",
            "%2e%2e",
            "?a=b#c",
            "\r\n",
            "\u{0}"
        ])
        .prop_map(str::to_owned),
        "[a-z./\\\\%?#&=+;,:@ \\[\\]{}|\"'<>\r\n\t-]{0,12}",
        any::<String>(),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            objects(inner).prop_map(Value::Object),
        ]
    })
}

fn objects(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(texts(), values, 0..5).prop_map(Map::from_iter)
}

fn styles() -> impl Strategy<Value = StyleOptions> {
    use ParameterStyle::*;
    let styles =
        vec![Simple, Label, Matrix, Form, SpaceDelimited, PipeDelimited, DeepObject, TabDelimited, Cookie];
    (prop::sample::select(styles), any::<bool>(), any::<bool>())
        .prop_map(|(style, explode, allow_reserved)| StyleOptions { style, explode, allow_reserved })
}

fn forms() -> impl Strategy<Value = ValueEncoding> {
    let types = vec!["application/json", "text/plain", "application/x-www-form-urlencoded"];
    prop_oneof![
        4 => styles().prop_map(ValueEncoding::Styled),
        1 => prop::sample::select(types).prop_map(|media_type| ValueEncoding::Content(media_type.to_owned())),
    ]
}

const LOCATIONS: [ParameterLocation; 5] = [
    ParameterLocation::Path,
    ParameterLocation::Query,
    ParameterLocation::QueryString,
    ParameterLocation::Header,
    ParameterLocation::Cookie,
];

/// An operation with one parameter in each location, and a body of the remaining arguments.
fn operations() -> impl Strategy<Value = OpenApiOperation> {
    let parameters = prop::collection::vec((forms(), any::<bool>()), LOCATIONS.len());
    (parameters, bodies()).prop_map(|(parameters, body)| {
        let parameter = |(location, (form, required)): (ParameterLocation, (ValueEncoding, bool))| {
            let name = format!("{location:?}");
            OperationParameter { argument: name.clone(), name, location, encoding: form, required }
        };
        operation(LOCATIONS.into_iter().zip(parameters).map(parameter).collect(), Some(body))
    })
}

fn operation(parameters: Vec<OperationParameter>, body: Option<RequestBody>) -> OpenApiOperation {
    let (name, server) = ("it".to_owned(), "https://a.example:81/base".to_owned());
    let path = if parameters.is_empty() { "/" } else { "/v1/{Path}/x.{Path}" }.to_owned();
    OpenApiOperation { name, method: Method::POST, server, path, parameters, body, accept: Vec::new() }
}

fn body(media_type: &str, kind: BodyKind) -> RequestBody {
    let content = BodyContent::Members { named: Vec::new(), accepts_others: true };
    RequestBody { media_type: media_type.to_owned(), kind, content, required: false }
}

fn bodies() -> impl Strategy<Value = RequestBody> {
    let kinds = (styles(), any::<bool>(), any::<bool>()).prop_flat_map(|(styled, attribute, wrapped)| {
        let part = |kind| FormPart { name: "a".into(), kind, media_type: None, styled: Some(styled) };
        let member = XmlShape { attribute, wrapped, ..XmlShape::default() };
        let shape = XmlShape { members: vec![("a".into(), member)], ..XmlShape::default() };
        prop::sample::select(vec![
            BodyKind::Json,
            BodyKind::Form(vec![part(PartKind::Json)]),
            BodyKind::Multipart(vec![part(PartKind::File)]),
            BodyKind::Multipart(vec![part(PartKind::Text)]),
            BodyKind::Xml(Box::new(shape)),
            BodyKind::Text,
            BodyKind::Bytes,
        ])
    });
    (kinds, any::<bool>()).prop_map(|(kind, is_one)| {
        let body = body("application/x", kind);
        let content = if is_one { BodyContent::Argument("a".to_owned()) } else { body.content };
        RequestBody { content, ..body }
    })
}

/// Arguments for each parameter, and additional ones.
fn arguments() -> impl Strategy<Value = Value> {
    let of_parameters = prop::collection::vec(prop::option::weighted(0.8, values()), LOCATIONS.len());
    (of_parameters, prop::option::of(values()), objects(values())).prop_map(|(values, a, others)| {
        let mut arguments = others;
        let named = LOCATIONS.iter().zip(values);
        arguments.extend(named.filter_map(|(location, value)| Some((format!("{location:?}"), value?))));
        arguments.extend(a.map(|a| ("a".to_owned(), a)));
        Value::Object(arguments)
    })
}

fn request(operation: &OpenApiOperation, arguments: &Value) -> Option<Request<Bytes>> {
    operation.request(Some(&Json::from_value(arguments)), None).ok()
}

/// The parts of a body, split by its boundary: names, file names and contents.
fn parts(request: &Request<Bytes>) -> Vec<(String, Option<String>, Vec<u8>)> {
    let content_type = request.headers()["content-type"].to_str().unwrap();
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text: String = request.body().iter().map(|byte| char::from(*byte)).collect();
    let (inner, end) = text.rsplit_once(&format!("--{boundary}--")).unwrap();
    assert_eq!(end, "\r\n");
    let delimiter = format!("--{boundary}\r\n");
    let mut parts = inner.split(&*delimiter);
    assert_eq!(parts.next(), Some(""));
    let quoted =
        |head: &str, key: &str| Some(head.split_once(&format!(" {key}=\""))?.1.split_once('"')?.0.to_owned());
    let part = |part: &str| {
        let (head, content) = part.strip_suffix("\r\n").unwrap().split_once("\r\n\r\n").unwrap();
        let content = content.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect();
        (quoted(head, "name").unwrap(), quoted(head, "filename"), content)
    };
    parts.map(part).collect()
}

/// The expected texts of a member in a form.
fn expected(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(text).collect(),
        value => vec![text(value)],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn request_stays_within_its_template(operation in operations(), arguments in arguments()) {
        if let Some(request) = request(&operation, &arguments) {
            let uri = request.uri();
            prop_assert_eq!(uri.scheme_str(), Some("https"));
            prop_assert_eq!(uri.authority().unwrap().as_str(), "a.example:81");
            let segments: Vec<_> = uri.path().split('/').collect();
            prop_assert_eq!(segments.len(), 5, "{}", uri);
            prop_assert_eq!(&segments[..3], &["", "base", "v1"]);
            prop_assert!(segments[1..].iter().all(|segment| !["", ".", ".."].contains(segment)), "{}", uri);
            let legal = |byte: u8| byte.is_ascii_graphic() && !b"\"<>[]^`{|}#\\".contains(&byte);
            prop_assert!(uri.to_string().bytes().all(legal), "{}", uri);
        }
    }

    #[test]
    fn query_has_one_pair_per_value(styled in styles(), value in texts(), other in texts()) {
        let form = ValueEncoding::Styled(styled);
        let parameter = |name: &str| OperationParameter { argument: name.into(), name: name.into(), location: ParameterLocation::Query, encoding: form.clone(), required: true };
        let operation = OpenApiOperation { path: "/".into(), ..operation(vec![parameter("q"), parameter("r[]=&")], None) };
        let request = request(&operation, &json!({ "q": value, "r[]=&": other })).unwrap();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned()).collect();
        prop_assert_eq!(pairs, ["q", "r[]=&"]);
        if !styled.allow_reserved {
            let seen: Vec<_> = form_urlencoded::parse(query.as_bytes()).map(|(_, value)| value.into_owned()).collect();
            prop_assert_eq!(seen, [value, other]);
        }
    }

    #[test]
    fn form_round_trips(members in objects(values())) {
        let operation = operation(Vec::new(), Some(body("application/x-www-form-urlencoded", BodyKind::Form(Vec::new()))));
        let request = request(&operation, &Value::Object(members.clone())).unwrap();
        let seen: Vec<_> = form_urlencoded::parse(request.body()).into_owned().collect();
        let pair = |(name, value): (&String, &Value)| {
            let name = name.clone();
            expected(value).into_iter().map(move |text| (name.clone(), text))
        };
        prop_assert_eq!(seen, members.iter().flat_map(pair).collect::<Vec<_>>());
    }

    #[test]
    fn multipart_body_round_trips(members in objects(values()), file: Vec<u8>) {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(&file);
        let mut members = members;
        members.insert("file".to_owned(), encoded.into());
        let part = FormPart { name: "file".into(), kind: PartKind::File, media_type: None, styled: None };
        let operation = operation(Vec::new(), Some(body("multipart/form-data", BodyKind::Multipart(vec![part]))));
        let request = request(&operation, &Value::Object(members.clone())).unwrap();
        let quoted = |name: &str| -> String {
            let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
            name.bytes().map(char::from).collect()
        };
        let part = |(name, value): (&String, &Value)| {
            let name = quoted(name);
            let contents = if name == "file" { vec![file.clone()] } else { expected(value).into_iter().map(String::into_bytes).collect() };
            let file_name = (name == "file").then(|| name.clone());
            contents.into_iter().map(move |content| (name.clone(), file_name.clone(), content))
        };
        prop_assert_eq!(parts(&request), members.iter().flat_map(part).collect::<Vec<_>>());
    }

    #[test]
    fn every_response_is_a_result(status in 100_u16..600, content_type in texts(), bytes: Vec<u8>, value in values()) {
        let uri = "https://a.example/x".parse().unwrap();
        for body in [bytes, value.to_string().into_bytes()] {
            let mut response = http::Response::new(Bytes::from(body));
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            if let Ok(content_type) = content_type.parse() {
                response.headers_mut().insert("content-type", content_type);
            }
            let output = operation(Vec::new(), None).result(&response, &uri, crate::ResultPromise::Object);
            prop_assert_eq!(output.is_error, !(200..300).contains(&status));
            prop_assert!(output.is_error || output.body.get("structuredContent").unwrap().is_object());
        }
    }
}
