//! Prism mocks a service from its description, validates the request of each tool call and reports violations of the
//! description.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use toolyard_testing::http;
use toolyard_testing::peers::{command, free_port, peer};
use toolyard_testing::process::RunningProgram;

use super::argument_generator::{MemberSelection, arguments};
use super::{document, handler};
use crate::support::gateway::TestGateway;

/// Calls that Prism cannot validate: a tool, optionally with members of its arguments, and the reason. A final `*` is a
/// wildcard.
type SkippedCalls = [(&'static str, &'static str)];

const ABSENT_HEADER: &str = "Prism dies of an optional array in a header that is not there";
const TEXT_PARTS: &str =
    "Prism takes each part of a multipart body for one text, also of an array or an object";
const DELIMITED: &str = "the document has an object in a style for arrays, and Prism dies of that";
const ARRAY_IN_PATH: &str = "Prism dies of an array in a path, in whatever style";
const QUOTED_NUMBER: &str = "the document allows a number and lists it as a text: Prism takes neither";
const PATTERN: &str = "something is required that has to match a pattern, and the tests know no text for it";

/// A mocked service.
pub(crate) struct PrismMock {
    process: RunningProgram,
    pub(crate) port: u16,
}

impl PrismMock {
    #[track_caller]
    pub(crate) fn start(document: &Path, home: &Path) -> Self {
        // Another process may take the free port before the service listens.
        let mock = (0..3).find_map(|_| Self::at(free_port(), document, home));
        mock.expect("a port is free")
    }

    #[track_caller]
    fn at(port: u16, document: &Path, home: &Path) -> Option<Self> {
        let mut prism = command(peer("node_modules/.bin/prism"), home);
        // Without `--errors`, which would also validate the responses that Prism generates.
        prism.args(["mock", "--host", "127.0.0.1", "--port", &port.to_string()]).arg(document);
        let process = RunningProgram::start(&mut prism);
        let listens = process.stdout.wait_for("the mock", |text| match text {
            _ if text.contains("Prism is listening") => Some(true),
            _ if text.contains("EADDRINUSE") => Some(false),
            _ => None,
        });
        listens.then_some(Self { process, port })
    }

    /// Returns the violations of the request with this number. The status of the response is not reliable: without a
    /// described success, Prism answers every request with a failure.
    #[track_caller]
    fn verdict(&self, number: usize) -> Result<(), String> {
        self.process.stdout.wait_for("a verdict", |text| {
            let section = text.split("Request received").nth(number)?;
            let is_refused = section.contains("did not pass the validation rules")
                || section.contains("terminated with error");
            match section {
                _ if section.contains("request passed the validation rules") => Some(Ok(())),
                _ => is_refused.then(|| Err(section.to_owned())),
            }
        })
    }
}

/// Calls all tools of a document, each with the required arguments and with all arguments. `schemes` are the names of
/// its security schemes.
#[track_caller]
fn check(name: &str, schemes: &[&str], tools: usize, skipped: &SkippedCalls) {
    let home = TempDir::new().unwrap();
    let Some(document) = document(name, home.path()) else { return };
    let mock = PrismMock::start(&document, home.path());
    let base = format!("http://127.0.0.1:{}", mock.port);
    let mut handler = handler(&format!("file:{}", document.display()), &base);
    let credentials = schemes.iter().map(|scheme| ((*scheme).to_owned(), json!({"value": "ann:secret"})));
    handler["openAPIConfig"]["credentials"] = credentials.collect::<Map<_, _>>().into();
    let gateway = TestGateway::with_handlers(&[handler]);
    let definitions = gateway.definitions();
    assert_eq!(definitions.len(), tools);

    let (mut requests, mut refused, mut not_judged) = (0, Vec::new(), vec![false; skipped.len()]);
    for (tool, members) in
        definitions.iter().flat_map(|tool| [(tool, MemberSelection::Required), (tool, MemberSelection::All)])
    {
        let call = format!("{} {members:?}", tool["name"].as_str().unwrap());
        if let Some(at) = skipped.iter().position(|(one, _)| is_match(one, &call)) {
            not_judged[at] = true;
            continue;
        }
        match call_one(&mock, &gateway, tool, members, requests + 1) {
            Ok(()) => requests += 1,
            Err(CallRejection { was_sent, reason }) => {
                requests += usize::from(was_sent);
                refused.push(format!("{call}: {reason}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    for ((call, reason), is_needed) in skipped.iter().zip(not_judged) {
        assert!(is_needed, "{call} is not among the calls: {reason}");
    }
}

/// The reason of a failed call, and whether it sent a request.
struct CallRejection {
    was_sent: bool,
    reason: String,
}

fn call_one(
    mock: &PrismMock,
    gateway: &TestGateway,
    tool: &Value,
    members: MemberSelection,
    number: usize,
) -> Result<(), CallRejection> {
    let unsent = |reason| CallRejection { was_sent: false, reason };
    let arguments = arguments(&tool["inputSchema"], members);
    let arguments = arguments.ok_or_else(|| unsent("no arguments are known".to_owned()))?;
    let answer = gateway.call(tool["name"].as_str().unwrap(), arguments.clone()).messages().pop().unwrap();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    if !answer["result"].is_object() || text.starts_with("Invalid arguments") {
        return Err(unsent(format!("{arguments}: {answer}")));
    }
    let verdict = mock.verdict(number);
    verdict.map_err(|said| CallRejection { was_sent: true, reason: format!("{arguments}: {said}") })
}

fn is_match(pattern: &str, call: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == call, |start| call.starts_with(start))
}

const PETSTORE_2: &str = "swagger-api-fixtures-immutable-specifications-v2-petstore.json";

/// A control: the other tests can fail.
#[test]
fn invalid_requests_are_detected() {
    let home = TempDir::new().unwrap();
    let Some(document) = document(PETSTORE_2, home.path()) else { return };
    let mock = PrismMock::start(&document, home.path());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, mock.port));
    let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer token")];
    let pet = r#"{"name": "Rex", "photoUrls": []}"#;
    let requests = [
        ("POST /pet", pet, true),
        ("POST /pet", r#"{"name": "Rex"}"#, false),
        ("GET /pet/findByStatus?status=none", "", false),
        ("GET /pets", "", false),
    ];
    for (number, (line, body, is_right)) in requests.into_iter().enumerate() {
        http::send(address, line, &headers, body);
        assert_eq!(mock.verdict(number + 1).is_ok(), is_right, "{line}");
    }
}

#[test]
fn petstore_of_swagger_2() {
    check(PETSTORE_2, &["api_key", "petstore_auth"], 20, &[]);
}

#[test]
fn petstore_of_openapi_3() {
    let name = "swagger-api-fixtures-immutable-specifications-v3-petstore3.json";
    check(name, &["api_key", "petstore_auth"], 19, &[]);
}

/// Names that collide, forms, XML, and bodies that are a number or a string.
#[test]
fn petstore_for_generators() {
    let name = "swagger-api-fixtures-immutable-specifications-v3-petstore3fake.yaml";
    let schemes = ["api_key", "petstore_auth", "http_basic_test", "api_key_query", "bearer_test"];
    let left_out = [
        ("testEnumParameters Required", ABSENT_HEADER),
        ("testEnumRequestBody All", QUOTED_NUMBER),
        ("testEndpointParameters *", PATTERN),
    ];
    check(name, &schemes, 45, &left_out);
}

/// Cookies, headers and queries.
#[test]
fn all_styles() {
    let left_out = [
        ("headers_standard Required", ABSENT_HEADER),
        ("headers_simple_nonExploded Required", ABSENT_HEADER),
        ("headers_simple_exploded Required", ABSENT_HEADER),
        ("paths_*", ARRAY_IN_PATH),
        ("formData*", TEXT_PARTS),
        ("form_data*", TEXT_PARTS),
        ("query_spaceDelimited_nonExploded *", DELIMITED),
        ("query_pipeDelimited_nonExploded *", DELIMITED),
    ];
    check("readmeio-3.0-yaml-parameters-style.yaml", &[], 25, &left_out);
}

/// Headers and multipart; bodies that require undescribed members.
#[test]
fn xero_files() {
    check("XeroAPI-xero-files.yaml", &["OAuth2"], 18, &[]);
}

/// Swagger 2, with forms.
#[test]
fn ory() {
    check("ory-spec-swagger.json", &["basic", "bearer", "oauth2"], 52, &[]);
}

/// `deepObject`, and numbers with bounds.
#[test]
fn impala_hotels() {
    check("apisguru-impala.travel-hotels.json", &["API_Key_Authentication", "paymentAuth"], 10, &[]);
}

/// Nested bodies composed with `allOf`, without read-only members.
#[test]
fn paypal_subscriptions() {
    let left_out = [("subscriptions_capture All", PATTERN), ("subscriptions_transactions *", PATTERN)];
    check("paypal-openapi-billing-subscriptions-v1.json", &["Oauth2"], 16, &left_out);
}

/// Recursive schemas.
#[test]
fn openfga() {
    check("openfga-docs-openapiv2-apidocs.swagger.json", &[], 24, &[]);
}

/// JSON, XML or a form for one body.
#[test]
fn billbee() {
    check("apisguru-billbee.io.json", &["X-Billbee-Api-Key", "basic"], 76, &[]);
}

/// Files, in multipart bodies and as whole bodies.
#[test]
fn digilocker() {
    let schemes = ["Customkey2", "Customkeys1", "bearerAuth", "oauthAuthorizeCode", "oauthsecurity"];
    check("apisguru-digitallocker.gov.in-authpartner.json", &schemes, 22, &[]);
}

/// OpenAPI 3.1.
#[test]
fn train_travel() {
    check("readmeio-3.1-json-train-travel.json", &["OAuth2"], 7, &[]);
}
