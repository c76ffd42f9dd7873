use toolyard_agent::openrouter::OpenRouterApi;
use toolyard_manifest::{EndpointUrl, SecretString};
use toolyard_testing::upstream::{ReceivedRequest, ReplyScript, ScriptedReply, TestUpstream};

use super::*;

const KEY: &str = "sk-or-v1-hunter2hunter2";

/// A client, and the scripted API that it calls.
struct ClientHarness {
    upstream: TestUpstream,
    client: OpenRouterClient,
}

impl ClientHarness {
    fn new(script: impl ReplyScript) -> Self {
        Self::with_settings(script, |settings| settings)
    }

    fn with_settings(
        script: impl ReplyScript,
        change: impl FnOnce(OpenRouterSettings) -> OpenRouterSettings,
    ) -> Self {
        let upstream = TestUpstream::start(script);
        let base_url = EndpointUrl::parse(&format!("http://{}/api/v1/", upstream.address)).unwrap();
        let api_key = Some(CredentialSource::Value(SecretString::new(KEY)));
        let settings = change(OpenRouterSettings { base_url, api_key, ..OpenRouterSettings::default() });
        let (http, secrets) = (HttpClient::without_roots().unwrap(), SecretRedactor::new([KEY.to_owned()]));
        let process = ProcessSettings::default();
        let client = OpenRouterClient::new(&settings, &process, http, &secrets, ByteBudget::default());
        Self { upstream, client }
    }

    async fn get(&self) -> Result<OpenRouterResponse, OpenRouterError> {
        self.client.get(&OpenRouterResource::Credits).await
    }

    /// Returns the error without its cause.
    async fn failure(&self) -> String {
        self.get().await.unwrap_err().to_string()
    }
}

fn credits(_: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::json("{}")
}

#[tokio::test]
async fn request_is_a_get_with_the_key() {
    let harness = ClientHarness::new(credits);
    let response = harness.get().await.unwrap();
    assert_eq!(response, OpenRouterResponse { status: 200, body: "{}".into(), retry_after: None });
    let request = harness.upstream.now(|log| log.requests[0].clone());
    assert_eq!(request.head.start, "GET /api/v1/credits HTTP/1.1");
    assert_eq!(request.head.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(request.body, "");
}

#[tokio::test]
async fn successful_response_has_no_secret() {
    let body = format!(r#"{{"data": "{KEY}"}}"#);
    let harness = ClientHarness::new(move |_: &ReceivedRequest| ScriptedReply::json(&body));
    assert_eq!(harness.get().await.unwrap().body, r#"{"data": "[REDACTED]"}"#);
}

#[tokio::test]
async fn key_in_a_file_is_read_at_each_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let source = CredentialSource::File(file.clone());
    let echo = |request: &ReceivedRequest| {
        let key = request.head.header("authorization").unwrap_or_default();
        ScriptedReply::http(401, "", key)
    };
    let harness = ClientHarness::with_settings(echo, |it| OpenRouterSettings { api_key: Some(source), ..it });
    let no_key = "The API key of OpenRouter cannot be read. Ask the operator to check it.";
    assert_eq!(harness.failure().await, no_key);
    for key in ["first-key-of-a-file\n", "second-key-of-a-file"] {
        std::fs::write(&file, key).unwrap();
        assert_eq!(harness.get().await.unwrap().body, "Bearer [REDACTED]");
        let sent =
            harness.upstream.now(|log| log.last("GET").head.header("authorization").unwrap().to_owned());
        assert_eq!(sent, format!("Bearer {}", key.trim()));
    }
    std::fs::write(&file, "two\nlines").unwrap();
    assert_eq!(harness.failure().await, no_key);
    assert_eq!(harness.upstream.now(|log| log.requests.len()), 2);
}

#[tokio::test]
async fn error_response_has_no_secret_and_bounded_length() {
    let body = format!("{KEY}{}", "x".repeat(100_000));
    let harness =
        ClientHarness::new(move |_: &ReceivedRequest| ScriptedReply::http(429, "retry-after: 7\r\n", &body));
    let response = harness.get().await.unwrap();
    assert_eq!((response.status, response.retry_after), (429, Some(7)));
    assert!(response.body.starts_with(b"[REDACTED]x") && response.body.len() < MAX_ERROR_BYTES);
}

#[tokio::test]
async fn redirect_is_a_response_and_not_followed() {
    let harness = ClientHarness::new(|_: &ReceivedRequest| {
        ScriptedReply::http(302, "location: http://127.0.0.1:9/\r\nretry-after: soon\r\n", "")
    });
    let response = harness.get().await.unwrap();
    assert_eq!(response, OpenRouterResponse { status: 302, body: Bytes::new(), retry_after: None });
}

#[tokio::test]
async fn failures_name_no_address() {
    let check = async |script: fn(&ReceivedRequest) -> ScriptedReply, expected: &str| {
        let harness = ClientHarness::with_settings(script, |settings| OpenRouterSettings {
            timeout: Duration::from_millis(300),
            response_bytes: 1000,
            ..settings
        });
        assert_eq!(harness.failure().await, expected);
    };
    let too_large =
        "The response of OpenRouter exceeds the limit of 1000 bytes. Ask the operator to raise it.";
    check(|_| ScriptedReply::json(&"x".repeat(1001)), too_large).await;
    let endless = |_: &ReceivedRequest| {
        ScriptedReply::live("application/json", futures_util::stream::iter([vec![b' '; 1001].into()]))
    };
    check(endless, too_large).await;
    let timeout = "OpenRouter has not answered within 0.3 s. Call again later.";
    check(|_| ScriptedReply::never(), timeout).await;
    check(|_| ScriptedReply::stalled("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), timeout).await;
    let broken = "OpenRouter cannot be reached (connection broken). Call again later.";
    check(|_| ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), broken).await;
    let harness = ClientHarness::new(credits);
    let address = harness.upstream.address;
    let ClientHarness { upstream, client } = harness;
    upstream.stop().await;
    let error = client.get(&OpenRouterResource::Credits).await.unwrap_err().to_string();
    assert_eq!(error, "OpenRouter cannot be reached (connection refused). Call again later.");
    assert!(!error.contains(&address.to_string()));
}

#[tokio::test]
async fn concurrent_requests_are_limited() {
    let harness = ClientHarness::with_settings(
        |_: &ReceivedRequest| ScriptedReply::never(),
        |settings| OpenRouterSettings { concurrent: 1, ..settings },
    );
    let requested = async {
        while harness.upstream.now(|log| log.requests.is_empty()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(harness.client.permits.available_permits(), 0);
        assert_eq!(harness.upstream.now(|log| log.requests.len()), 1);
    };
    tokio::select! {
        _ = futures_util::future::join(harness.get(), harness.get()) => panic!("there is no response"),
        () = requested => {}
    }
}

#[test]
fn server_has_only_tools_that_read() {
    let server = mcp_server(&OpenRouterSettings {
        base_url: EndpointUrl::parse("http://127.0.0.1:9/").unwrap(),
        ..OpenRouterSettings::default()
    });
    let catalog = server.unwrap().into_backend().catalog().borrow().clone();
    assert_eq!(catalog.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), openrouter::NAMES);
    for tool in &catalog.tools {
        assert_eq!(
            tool.definition.to_json().to_value()["annotations"]["readOnlyHint"],
            true,
            "{}",
            tool.name
        );
    }
}
