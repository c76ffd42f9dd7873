//! The OpenAPI backend: reading of descriptions, and credentials of requests.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use toolyard_backends::delivery::{RequestDelivery, ResendPolicy};
use toolyard_backends::openapi::credentials::{OpenApiCredential, ServiceCredentials};
use toolyard_backends::openapi::source::DescriptionLocation;
use toolyard_backends::openapi::{OpenApiBackend, OpenApiOptions};
use toolyard_core::{Backend, BackendPhase, Call, Json, Outcome, RetrySchedule, SecretRedactor, ToolError};
use toolyard_net::auth::{HttpAuthScheme, SecretSource as Secret, UpstreamCredentials};
use toolyard_net::client::HttpClient;

use crate::response;
use crate::server::{Answer, Server};

const PETS: &str = "openapi: 3.0.3
paths:
  /pets/{id}:
    get: {operationId: getPet, parameters: [{name: id, in: path, required: true, schema: {type: integer}}], responses: {}}
";

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

fn document(headers: &str, text: &str) -> Answer {
    Answer::Text(response(&format!("200 OK\r\n{headers}content-type: application/yaml"), text))
}

fn options(source: DescriptionLocation) -> OpenApiOptions {
    OpenApiOptions {
        probe: None,
        name: "pets".into(),
        source,
        base_url: None,
        read_options: toolyard_openapi::ReadOptions::default(),
        max_tools: 10,
        headers: HeaderMap::new(),
        auth: None,
        credentials: ServiceCredentials::default(),
        delivery: RequestDelivery {
            attempt_time: Duration::from_secs(10),
            policy: ResendPolicy {
                retry: RetrySchedule::never(),
                statuses: Vec::new(),
                network_errors: false,
                respect_retry_after: true,
            },
            budget: toolyard_net::budget::ByteBudget::default(),
            response_bytes: 1000,
        },
        refresh: None,
        read_time: Duration::from_secs(10),
        document_bytes: 100_000,
    }
}

fn start(options: OpenApiOptions) -> OpenApiBackend {
    OpenApiBackend::start(options, &HttpClient::without_roots().unwrap())
}

/// Starts a backend for the description at `/api/openapi.yaml` of a server.
fn at(server: &Server, change: impl FnOnce(&mut OpenApiOptions)) -> OpenApiBackend {
    let url = format!("{}api/openapi.yaml", server.url());
    let mut options = options(DescriptionLocation::Url(url.parse().unwrap()));
    change(&mut options);
    start(options)
}

/// Waits for the tools and returns their names, or the reason why the backend is unavailable.
async fn tools(backend: &OpenApiBackend) -> String {
    let mut catalog = backend.catalog();
    let catalog = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await.unwrap();
    match &catalog.phase {
        BackendPhase::Unavailable { reason } => reason.to_string(),
        _ => catalog.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>().join(" "),
    }
}

/// Waits until the tools have the expected names.
async fn becomes(backend: &OpenApiBackend, expected: &str) {
    let names = |catalog: &toolyard_core::Catalog| {
        catalog.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>().join(" ") == expected
    };
    backend.catalog().wait_for(|catalog| names(catalog)).await.unwrap();
}

async fn call(backend: &OpenApiBackend, tool: &str, arguments: &str) -> Result<String, ToolError> {
    match backend.call(Call::tool(tool, Json::parse(arguments.to_owned()).unwrap())).await? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// Formats a request in one line: request line, headers with credentials or conditions, body.
fn summary(request: &str) -> String {
    let mut lines = request.lines();
    let first = lines.next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let is_relevant = |line: &&str| {
        ["authorization", "x-", "cookie", "if-"]
            .iter()
            .any(|name| line.to_ascii_lowercase().starts_with(name))
    };
    let headers: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).filter(is_relevant).collect();
    let body = lines.collect::<Vec<_>>().join("");
    [&[first.as_str()][..], &headers, &[body.as_str()][..]].concat().join(" ").trim_end().to_owned()
}

fn request_summaries(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| summary(request)).collect()
}

#[tokio::test]
async fn description_becomes_callable_tools() {
    let server = Server::start(&[document("", PETS), OK.into()]).await;
    let backend = at(&server, |options| {
        options.headers.insert("x-tenant", HeaderValue::from_static("me"));
        options.auth = Some(UpstreamCredentials {
            scheme: HttpAuthScheme::Bearer,
            source: Secret::Value("token".into()),
            secrets: SecretRedactor::default(),
        });
    });
    assert_eq!(tools(&backend).await, "getPet");
    assert_eq!(backend.catalog().borrow().protocol.as_deref(), Some("OpenAPI 3.0"));
    let result = call(&backend, "getPet", r#"{"id": 7}"#).await.unwrap();
    assert_eq!(result, r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}"#);
    assert_eq!(
        request_summaries(&server),
        [
            "GET /api/openapi.yaml x-tenant: me authorization: Bearer token",
            "GET /pets/7 x-tenant: me authorization: Bearer token",
        ]
    );
    let error = call(&backend, "other", "{}").await.unwrap_err();
    assert_eq!(error.message(), "The service no longer has this operation");
}

#[tokio::test]
async fn refresh_uses_conditional_requests() {
    let renamed = PETS.replace("getPet", "fetchPet");
    let unchanged = Answer::Text("HTTP/1.1 304 Not Modified\r\n\r\n".to_owned());
    let answers = [
        document("etag: \"1\"\r\n", PETS),
        unchanged,
        document("last-modified: yesterday\r\n", &renamed),
        document("", &renamed),
    ];
    let server = Server::start(&answers).await;
    let backend = at(&server, |_| {});
    assert_eq!(tools(&backend).await, "getPet");
    let mut catalog = backend.catalog();
    catalog.mark_unchanged();
    backend.refresh();
    server.wait_for(2).await;
    backend.refresh();
    becomes(&backend, "fetchPet").await;
    backend.refresh();
    server.wait_for(4).await;
    let conditions: Vec<_> = request_summaries(&server)
        .into_iter()
        .map(|line| line.replace("GET /api/openapi.yaml", ""))
        .collect();
    assert_eq!(
        conditions,
        ["", " if-none-match: \"1\"", " if-none-match: \"1\"", " if-modified-since: yesterday"]
    );
}

#[tokio::test]
async fn unreadable_description_is_retried() {
    let away = Answer::Text(response("503 Service Unavailable", ""));
    let server = Server::start(&[away, document("", "openapi: 5"), document("", PETS)]).await;
    let backend = at(&server, |_| {});
    let url = format!("{}api/openapi.yaml", server.url());
    assert_eq!(
        tools(&backend).await,
        format!("the description cannot be read: {url}: HTTP status 503 Service Unavailable")
    );
    becomes(&backend, "getPet").await;
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn tools_survive_a_failed_refresh() {
    let server = Server::start(&[document("", PETS), document("", "<html>"), OK.into()]).await;
    let backend = at(&server, |options| options.refresh = Some(Duration::from_millis(10)));
    assert_eq!(tools(&backend).await, "getPet");
    server.wait_for(2).await;
    call(&backend, "getPet", r#"{"id": 1}"#).await.unwrap();
    assert_eq!(backend.catalog().borrow().phase, BackendPhase::Ready);
}

#[tokio::test]
async fn credentials_do_not_follow_a_description_to_another_server() {
    let elsewhere = format!("{PETS}servers: [{{url: 'https://elsewhere.example'}}]\n");
    let answers = [document("", PETS), document("", &elsewhere), document("", PETS), OK.into()];
    let server = Server::start(&answers).await;
    let backend = at(&server, |options| {
        options.headers.insert("x-key", HeaderValue::from_static("k"));
    });
    tools(&backend).await;
    backend.refresh();
    // A refused description is fetched again.
    server.wait_for(3).await;
    call(&backend, "getPet", r#"{"id": 1}"#).await.unwrap();
    assert_eq!(request_summaries(&server)[3], "GET /pets/1 x-key: k");
}

#[tokio::test]
async fn files_refer_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("paths")).unwrap();
    write(
        "openapi.yaml",
        "openapi: 3.0.3\nservers: [{url: 'https://a.example'}]\npaths: {/pets: {$ref: paths/pets.yaml}}",
    );
    write("paths/pets.yaml", "get: {operationId: listPets, responses: {}}");
    let backend = start(options(DescriptionLocation::File(folder.path().join("openapi.yaml"))));
    assert_eq!(tools(&backend).await, "listPets");
    write("paths/pets.yaml", "get: {operationId: allPets, responses: {}}");
    backend.refresh();
    becomes(&backend, "allPets").await;
}

#[tokio::test]
async fn description_without_server_is_unavailable() {
    let inline = || options(DescriptionLocation::Inline(PETS.to_owned()));
    assert_eq!(
        tools(&start(inline())).await,
        "no call can work, because the description has no absolute server URL: set `openAPIConfig.baseURL`, such as \
         `https://api.example.com/v1`"
    );
    let base_url = Some("https://a.example".to_owned());
    assert_eq!(tools(&start(OpenApiOptions { base_url, ..inline() })).await, "getPet");
}

#[tokio::test]
async fn tool_that_no_arguments_satisfy_is_left_out() {
    let limits = "{type: integer, minimum: 5, maximum: 2}";
    let document = format!(
        "{PETS}  /toys: {{get: {{operationId: getToys, parameters: [{{name: a, in: query, required: true, schema: {limits}}}]}}}}\n"
    );
    let base_url = Some("https://a.example".to_owned());
    let backend = start(OpenApiOptions { base_url, ..options(DescriptionLocation::Inline(document)) });
    assert_eq!(tools(&backend).await, "getPet");
    let left_out = backend.catalog().borrow().left_out[0].clone();
    assert_eq!((left_out.len(), &*left_out[0].name), (1, "getToys"));
    assert_eq!(&*left_out[0].reason, "no arguments satisfy its schema: /a: `minimum` is above `maximum`");
}

#[tokio::test]
async fn failed_file_falls_back_to_its_last_version() {
    let root = "openapi: 3.0.3\npaths: {/pets: {$ref: pets.yaml}, /b: {get: {operationId: other}}}";
    let pets = "get: {operationId: listPets, responses: {}}";
    let away = Answer::Text(response("503 Service Unavailable", ""));
    let renamed = root.replace("other", "another");
    let answers = [document("", root), document("", pets), document("", &renamed), away];
    let server = Server::start(&answers).await;
    let backend = at(&server, |_| {});
    assert_eq!(tools(&backend).await, "listPets other");
    backend.refresh();
    becomes(&backend, "listPets another").await;
}

#[tokio::test]
async fn device_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openapi.yaml");
    std::fs::write(&path, "openapi: 3.0.3\npaths: {/a: {$ref: /dev/zero}, /b: {get: {operationId: other}}}")
        .unwrap();
    let base_url = Some("https://a.example".to_owned());
    let backend = start(OpenApiOptions { base_url, ..options(DescriptionLocation::File(path)) });
    assert_eq!(tools(&backend).await, "other");
}

#[tokio::test]
async fn remote_description_stays_within_its_limits() {
    let check = async |change: fn(&mut OpenApiOptions), text: &str, expected: &str| {
        let server = Server::start(&[document("", text)]).await;
        let backend = at(&server, change);
        assert_eq!(tools(&backend).await, expected, "{text}");
    };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let file = |scheme: &str| format!("openapi: 3.0.3\npaths: {{/a: {{$ref: '{scheme}{}'}}}}", own.display());
    check(|_| {}, &file("file://"), "").await;
    let elsewhere = "openapi: 3.0.3\npaths: {/a: {$ref: 'http://127.0.0.1:1/a.yaml'}}";
    check(|_| {}, elsewhere, "").await;
    let many = "it has 1 operations, but the limit is 0 tools (limits.toolsPerHandler): select operations with \
                `operationFilter` or `filter`";
    check(|options| options.max_tools = 0, PETS, many).await;
    let server = Server::start(&[document("", PETS)]).await;
    let backend = at(&server, |options| options.document_bytes = 100);
    assert!(tools(&backend).await.ends_with("larger than 100 bytes"), "{}", tools(&backend).await);
}

#[tokio::test]
async fn redirects_are_followed_to_public_addresses_only() {
    let moved = Answer::Text(response("302 Found\r\nlocation: /v2/openapi.yaml", ""));
    let server = Server::start(&[moved, document("", PETS)]).await;
    let backend = at(&server, |_| {});
    assert_eq!(tools(&backend).await, "getPet");
    assert_eq!(request_summaries(&server), ["GET /api/openapi.yaml", "GET /v2/openapi.yaml"]);

    let other = Server::start(&[]).await;
    let away = Answer::Text(response(&format!("302 Found\r\nlocation: {}", other.url()), ""));
    let server = Server::start(&[away]).await;
    let backend = at(&server, |_| {});
    assert!(tools(&backend).await.ends_with("the host has no public address"), "{}", tools(&backend).await);
    assert!(other.requests().is_empty());
}

/// Returns a document whose operations require `scheme`.
fn secured_by(scheme: &str) -> Answer {
    document(
        "",
        &format!(
            "{PETS}security: [{{other: []}}, {{it: [read, write]}}]\ncomponents: {{securitySchemes: {{it: {scheme}}}}}\n"
        ),
    )
}

fn credentials(credential: OpenApiCredential) -> ServiceCredentials {
    ServiceCredentials::new(HashMap::from([("it".to_owned(), credential)]), SecretRedactor::default())
}

#[tokio::test]
async fn credentials_are_applied_by_scheme() {
    let check = async |scheme: &str, secret: &str, expected: &str| {
        let server = Server::start(&[secured_by(scheme), OK.into()]).await;
        let secret = OpenApiCredential::Secret(Secret::Value(secret.to_owned()));
        let backend = at(&server, |options| options.credentials = credentials(secret));
        tools(&backend).await;
        call(&backend, "getPet", r#"{"id": 1}"#).await.unwrap();
        assert_eq!(request_summaries(&server)[1], expected, "{scheme}");
    };
    check("{type: apiKey, in: header, name: X-Key}", "k", "GET /pets/1 x-key: k").await;
    check("{type: apiKey, in: query, name: api key}", "a&b", "GET /pets/1?api%20key=a%26b").await;
    check("{type: apiKey, in: cookie, name: session}", "k", "GET /pets/1 cookie: session=k").await;
    check("{type: http, scheme: basic}", "me:secret", "GET /pets/1 authorization: Basic bWU6c2VjcmV0").await;
    check("{type: http, scheme: bearer}", "t", "GET /pets/1 authorization: Bearer t").await;
    check("{type: openIdConnect}", "t", "GET /pets/1 authorization: Bearer t").await;
}

#[tokio::test]
async fn unsupported_scheme_is_an_error() {
    let server = Server::start(&[secured_by("{type: http, scheme: digest}")]).await;
    let secret = OpenApiCredential::Secret(Secret::Value("me:secret".to_owned()));
    let backend = at(&server, |options| options.credentials = credentials(secret));
    tools(&backend).await;
    let error = call(&backend, "getPet", r#"{"id": 1}"#).await.unwrap_err();
    assert_eq!(
        error.message(),
        "The credentials of this tool cannot be used: its security scheme is not supported"
    );
    assert_eq!(server.requests().len(), 1);
}

fn client(token_url: Option<String>) -> ServiceCredentials {
    let secret = Secret::Value("s&t".to_owned());
    credentials(OpenApiCredential::OAuthClient { id: "me".to_owned(), secret, token_url, scopes: None })
}

fn token(text: &str, seconds: u64) -> Answer {
    let body = format!(r#"{{"access_token": "{text}", "token_type": "Bearer", "expires_in": {seconds}}}"#);
    Answer::Text(response("200 OK\r\ncontent-type: application/json", &body))
}

#[tokio::test]
async fn tokens_are_cached_until_they_are_refused() {
    let refused = Answer::Text(response("401 Unauthorized", ""));
    let tokens = Server::start(&[token("one", 3600), refused.clone(), token("two", 3600)]).await;
    let answers = [secured_by("{type: oauth2}"), OK.into(), OK.into(), refused, OK.into()];
    let server = Server::start(&answers).await;
    let backend = at(&server, |options| options.credentials = client(Some(format!("{}token", tokens.url()))));
    tools(&backend).await;
    for id in [1, 2, 3] {
        call(&backend, "getPet", &format!(r#"{{"id": {id}}}"#)).await.unwrap();
    }
    assert_eq!(
        request_summaries(&server)[1..],
        [
            "GET /pets/1 authorization: Bearer one",
            "GET /pets/2 authorization: Bearer one",
            "GET /pets/3 authorization: Bearer one",
            "GET /pets/3 authorization: Bearer two",
        ]
    );
    // Basic authentication is tried first, then the form parameters.
    let basic =
        "POST /token authorization: Basic bWU6cyUyNnQ= grant_type=client_credentials&scope=read%20write";
    let form =
        "POST /token grant_type=client_credentials&scope=read%20write&client_id=me&client_secret=s%26t";
    assert_eq!(request_summaries(&tokens), [basic, basic, form]);
}

#[tokio::test]
async fn concurrent_calls_share_one_token_request() {
    let tokens = Server::start(&[token("one", 3600)]).await;
    let scheme = format!(
        "{{type: oauth2, flows: {{clientCredentials: {{tokenUrl: '{}t', scopes: {{}}}}}}}}",
        tokens.url()
    );
    let answers: Vec<Answer> = std::iter::once(secured_by(&scheme)).chain(vec![OK.into(); 20]).collect();
    let server = Server::start(&answers).await;
    let backend = at(&server, |options| options.credentials = client(None));
    tools(&backend).await;
    let calls = (0..20).map(|_| call(&backend, "getPet", r#"{"id": 1}"#));
    assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(tokens.requests().len(), 1);
}

#[tokio::test]
async fn request_without_a_token_is_not_sent() {
    let tokens = Server::start(&[Answer::Text(response("403 Forbidden", "s&t is wrong"))]).await;
    let server = Server::start(&[secured_by("{type: oauth2}")]).await;
    let backend = at(&server, |options| options.credentials = client(Some(tokens.url())));
    tools(&backend).await;
    let error = call(&backend, "getPet", r#"{"id": 1}"#).await.unwrap_err();
    assert_eq!(error.message(), "The credentials of this tool are not accepted: no access token was issued");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the token endpoint answered with HTTP status 403 Forbidden");
    assert_eq!(server.requests().len(), 1);
}
