use toolyard_core::Registry;

use super::*;

#[test]
fn arguments_are_read() {
    let check = |text: &str, expected: Result<&str, &str>| {
        let arguments = arguments_of(text.to_owned());
        let arguments = arguments.map(|json| json.as_text().to_owned()).map_err(|status| {
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            status.message().to_owned()
        });
        assert_eq!(arguments, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    };
    for text in ["", " \n", "null", " null ", "{}"] {
        check(text, Ok("{}"));
    }
    check(r#" {"a": 1.10} "#, Ok(r#"{"a": 1.10}"#));
    for text in ["[]", "1", "\"{}\"", "false"] {
        check(text, Err("`arguments_json` is not a JSON object"));
    }
    check("{", Err("`arguments_json` is not JSON: expected a string at byte 1"));
    check("{} {}", Err("`arguments_json` is not JSON: text after the value at byte 3"));
}

#[test]
fn metadata_becomes_meta() {
    let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert!(meta_of(HashMap::new()).is_empty());
    let meta = meta_of(HashMap::from([entry("b", "2"), entry("a", "\"1\""), entry("progressToken", "x")]));
    let expected = r#"{"omnia.altairalabs.ai/metadata":{"a":"\"1\"","b":"2","progressToken":"x"}}"#;
    assert_eq!(meta.to_json().as_text(), expected);
}

#[test]
fn content_types_of_grpc() {
    let check = |content_type: &str, expected: bool| {
        let request = Request::post("/").header(header::CONTENT_TYPE, content_type).body(Body::empty());
        assert_eq!(is_grpc(&request.unwrap()), expected, "{content_type}");
    };
    for content_type in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
        check(content_type, true);
    }
    for content_type in ["application/json", "application/grpc-web", "application/grpcx", ""] {
        check(content_type, false);
    }
}

/// Returns the service of a gateway whose handlers have not answered yet, and what keeps it waiting for them.
fn waiting_service() -> (ToolService, impl Sized) {
    let (registry, unsettled) = watch::channel(Arc::new(Registry::default()));
    let (running, stopping) = watch::channel(false);
    let service = ToolService(Arc::new(ToolServiceParts {
        gateway: Arc::new(Gateway::new(unsettled, Vec::new())),
        caller: |_| Ok(Caller::default()),
        owner: |_| None,
        stopping,
        budget: ByteBudget::default(),
        message_bytes: 1024,
        message_time: Duration::from_secs(30),
    }));
    (service, (registry, running))
}

/// Sends a message to list the tools, and returns the status of gRPC.
async fn status_of_list(service: &mut ToolService, message: Vec<u8>) -> String {
    let request = Request::post(LIST_TOOLS_PATH).header(header::CONTENT_TYPE, "application/grpc");
    let request = request.header("grpc-timeout", "2S").body(Body::from(message)).unwrap();
    let response = timeout(Duration::from_secs(60), service.call(request)).await.expect("an answer").unwrap();
    response.headers()["grpc-status"].to_str().unwrap().to_owned()
}

/// Handlers that have not answered yet delay the list.
#[tokio::test(start_paused = true)]
async fn list_ends_at_the_deadline_of_its_caller() {
    let (mut service, _waits) = waiting_service();
    let start = Instant::now();
    assert_eq!(status_of_list(&mut service, vec![0; MESSAGE_HEAD_BYTES]).await, "4");
    assert_eq!(start.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn message_that_is_too_large_exhausts_a_resource() {
    const RESOURCE_EXHAUSTED: &str = "8";
    let (mut service, _waits) = waiting_service();
    let mut check = async |declared: u32, sent: usize, expected: &str| {
        let message = [&[0][..], &declared.to_be_bytes(), &vec![0; sent]].concat();
        assert_eq!(status_of_list(&mut service, message).await, expected, "{declared} {sent}");
    };
    check(2048, 2048, RESOURCE_EXHAUSTED).await;
    // The length alone is too large.
    check(1025, 0, RESOURCE_EXHAUSTED).await;
    check(u32::MAX, 10, RESOURCE_EXHAUSTED).await;
}
