//! Calls of methods.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use prost_types::Any;
use tokio::time::Instant;
use toolyard_core::{Backend, Call, Client, ClientNotification, Json};
use toolyard_grpc::client::{GrpcBackend, parse_code};
use toolyard_testing::wait::until_async;

use crate::support::{ShopServer, call, described, names, options, ready, run};

/// A backend of the methods of `shop.v1.Orders`.
struct Shop {
    server: ShopServer,
    backend: GrpcBackend,
}

impl Shop {
    async fn start(change: impl FnOnce(&mut toolyard_grpc::client::GrpcOptions)) -> Self {
        let server = ShopServer::start(&[]);
        let mut options = options(&server.address, None);
        change(&mut options);
        let backend = GrpcBackend::start(options);
        ready(&backend).await;
        Self { server, backend }
    }

    /// Returns the name of the tool of a method.
    fn tool(&self, method: &str) -> String {
        let catalog = self.backend.catalog().borrow().clone();
        names(&catalog).into_iter().find(|name| name.contains(method)).unwrap().to_owned()
    }

    async fn call(&self, method: &str, arguments: &str) -> Result<String, String> {
        call(&self.backend, &self.tool(method), arguments).await
    }
}

fn structured(result: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(result).unwrap()["structuredContent"].clone()
}

#[tokio::test]
async fn arguments_and_results_are_json() {
    let shop = Shop::start(|_| {}).await;
    let order = shop.call("GetOrder", r#"{"id":"9007199254740993","noteBytes":3}"#).await.unwrap();
    assert_eq!(
        structured(&order),
        serde_json::json!({"id": "9007199254740993", "note": "xxx", "state": "STATE_OPEN"})
    );
    let refused = shop.call("GetOrder", r#"{"idd":1}"#).await.unwrap_err();
    assert!(refused.starts_with("invalid_arguments: "), "{refused}");
}

#[tokio::test]
async fn metadata_credentials_and_deadline_are_sent() {
    let shop = Shop::start(|_| {}).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut call = Call::tool(shop.tool("Inspect"), Json::parse("{}").unwrap());
    call.meta.set("traceparent", Json::string(parent));
    call.deadline = Some(Instant::now() + Duration::from_secs(20));
    let seen = structured(&run(&shop.backend, call).await.unwrap());
    assert_eq!(seen["hasDeadline"], true);
    assert_eq!(seen["metadata"]["x-tenant"], "acme");
    assert_eq!(seen["metadata"]["authorization"], "Bearer sesame");
    assert_eq!(seen["metadata"]["traceparent"], parent);
}

#[tokio::test]
async fn statuses_become_errors() {
    let shop = Shop::start(|_| {}).await;
    let check = async |code: u8, expected: &str| {
        let error =
            shop.call("Fail", &format!(r#"{{"code":{code},"message":"so {code}"}}"#)).await.unwrap_err();
        let expected = expected.split_once(' ').unwrap();
        let name = expected.1;
        assert_eq!(error, format!("{}: gRPC status {name}: so {code} [gRPC status {name}]", expected.0));
    };
    check(1, "execution_failed CANCELLED").await;
    check(2, "execution_failed UNKNOWN").await;
    check(3, "invalid_arguments INVALID_ARGUMENT").await;
    check(4, "timeout DEADLINE_EXCEEDED").await;
    check(5, "execution_failed NOT_FOUND").await;
    check(6, "execution_failed ALREADY_EXISTS").await;
    check(7, "denied PERMISSION_DENIED").await;
    check(8, "rate_limited RESOURCE_EXHAUSTED").await;
    check(9, "execution_failed FAILED_PRECONDITION").await;
    check(10, "execution_failed ABORTED").await;
    check(11, "invalid_arguments OUT_OF_RANGE").await;
    check(12, "execution_failed UNIMPLEMENTED").await;
    check(13, "execution_failed INTERNAL").await;
    check(14, "unavailable UNAVAILABLE").await;
    check(15, "execution_failed DATA_LOSS").await;
    check(16, "denied UNAUTHENTICATED").await;
}

#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
}

#[tokio::test]
async fn details_of_a_status_are_shown() {
    let shop = Shop::start(|_| {}).await;
    let info = ErrorInfo { reason: "STOCK".to_owned() };
    let detail =
        Any { type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(), value: info.encode_to_vec() };
    let details = RpcStatus { details: vec![detail] }.encode_to_vec();
    let details = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, details);
    let arguments = format!(r#"{{"code":9,"message":"sold out","details":"{details}"}}"#);
    assert_eq!(
        shop.call("Fail", &arguments).await.unwrap_err(),
        "execution_failed: gRPC status FAILED_PRECONDITION: sold out (reason STOCK) [gRPC status FAILED_PRECONDITION]"
    );
}

#[tokio::test]
async fn retryable_statuses_are_retried() {
    let shop = Shop::start(|options| options.delivery.retry.attempts = 3).await;
    let order = shop.call("Fail", r#"{"code":14,"message":"a","times":2}"#).await.unwrap();
    assert_eq!(structured(&order)["id"], "2");
    let failed = shop.call("Fail", r#"{"code":14,"message":"b","times":9}"#).await.unwrap_err();
    assert!(failed.starts_with("unavailable: 3 attempts exhausted: gRPC status UNAVAILABLE"), "{failed}");
    let once = shop.call("Fail", r#"{"code":13,"message":"c","times":1}"#).await.unwrap_err();
    assert!(once.starts_with("execution_failed: gRPC status INTERNAL"), "{once}");
}

#[tokio::test]
async fn late_response_is_a_timeout_and_the_server_is_told() {
    let shop = Shop::start(|options| options.delivery.attempt_time = Duration::from_millis(300)).await;
    let late = shop.call("GetOrder", r#"{"delay":"60s"}"#).await.unwrap_err();
    assert!(late.starts_with("timeout: "), "{late}");
    until_written(&shop.server, "cancelled").await;
}

#[tokio::test]
async fn deadline_of_a_caller_does_not_count_as_a_failure() {
    let shop = Shop::start(|_| {}).await;
    for _ in 0..6 {
        let mut call = Call::tool(shop.tool("GetOrder"), Json::parse(r#"{"delay":"60s"}"#).unwrap());
        call.deadline = Some(Instant::now() + Duration::from_millis(20));
        let late = run(&shop.backend, call).await.map_err(described).unwrap_err();
        assert!(late.starts_with("timeout: "), "{late}");
    }
    assert!(shop.call("GetOrder", r#"{"id":1}"#).await.is_ok());
    assert_eq!(shop.backend.last_failure(), None);
}

/// Waits until the server has written a word.
async fn until_written(server: &ShopServer, word: &str) {
    until_async(word, || server.process.stderr.text().contains(word)).await;
}

#[tokio::test]
async fn dropped_call_is_cancelled_at_the_server() {
    let shop = Shop::start(|_| {}).await;
    tokio::select! {
        result = shop.call("GetOrder", r#"{"delay":"60s"}"#) => panic!("{result:?}"),
        () = until_written(&shop.server, "waiting") => {}
    }
    until_written(&shop.server, "cancelled").await;
}

#[tokio::test]
async fn large_messages_are_bounded() {
    let shop = Shop::start(|_| {}).await;
    let order = shop.call("GetOrder", r#"{"noteBytes":1000000}"#).await.unwrap();
    assert_eq!(structured(&order)["note"].as_str().unwrap().len(), 1_000_000);
    assert_eq!(
        shop.call("GetOrder", r#"{"noteBytes":2000000}"#).await.unwrap_err(),
        "execution_failed: The response is larger than 1048576 bytes [response larger than 1048576 bytes]"
    );
}

#[tokio::test]
async fn bytes_in_flight_are_bounded() {
    let shop = Shop::start(|options| {
        let budget = toolyard_net::budget::ByteBudget::new(256 << 10);
        options.budget = budget;
    })
    .await;
    let refused = shop.call("GetOrder", r#"{"noteBytes":900000}"#).await.unwrap_err();
    assert!(refused.starts_with("unavailable: There is no memory left for the response"), "{refused}");
}

/// A client that records progress.
#[derive(Debug, Default)]
struct Progress(Mutex<Vec<String>>);

impl Client for Progress {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        true
    }

    fn notify(&self, notice: ClientNotification) {
        let ClientNotification::Progress(body) = notice else { return };
        self.0.lock().unwrap().push(body.params.to_json().as_text().to_owned());
    }
}

#[tokio::test]
async fn stream_is_collected_with_progress() {
    let shop = Shop::start(|_| {}).await;
    let client = Arc::new(Progress::default());
    let mut call = Call::tool(shop.tool("WatchOrder"), Json::parse(r#"{"id":1,"states":2}"#).unwrap());
    call.client = client.clone();
    let orders = run(&shop.backend, call).await.unwrap();
    let expected = serde_json::json!({"messages": [
        {"id": "1", "state": "STATE_OPEN"}, {"id": "1", "state": "STATE_SENT"}]});
    assert_eq!(structured(&orders), expected);
    assert_eq!(
        *client.0.lock().unwrap(),
        [r#"{"progress":1,"message":"1 messages"}"#, r#"{"progress":2,"message":"2 messages"}"#]
    );
    let empty = shop.call("WatchOrder", "{}").await.unwrap();
    assert_eq!(structured(&empty), serde_json::json!({"messages": []}));
}

#[tokio::test]
async fn stream_beyond_a_bound_is_cut() {
    let shop = Shop::start(|_| {}).await;
    for (arguments, bound) in
        [(r#"{"states":1000000}"#, "maxMessages"), (r#"{"states":9,"noteBytes":20000}"#, "maxBytes")]
    {
        let cut = shop.call("WatchOrder", arguments).await.unwrap();
        let note = format!("further messages, which are left out: it exceeds `{bound}`");
        assert!(cut.contains(&note), "{bound}");
        let structured = structured(&cut);
        assert_eq!(structured["truncated"], true, "{bound}");
        let messages = structured["messages"].as_array().unwrap().len();
        assert_eq!(messages, if bound == "maxMessages" { 10 } else { 3 });
    }
}

#[tokio::test]
async fn stream_that_fails_is_an_error() {
    let shop = Shop::start(|_| {}).await;
    let failed = shop.call("WatchOrder", r#"{"id":-1,"states":2}"#).await.unwrap_err();
    assert!(failed.starts_with("execution_failed: gRPC status DATA_LOSS: the stream broke"), "{failed}");
}

/// A call is committed once the caller has seen something of its response (A6 of gRPC, "When retries are valid").
#[tokio::test]
async fn stream_is_repeated_before_its_first_message_only() {
    let shop = Shop::start(|options| {
        options.delivery.retry.attempts = 3;
        options.delivery.retryable = vec![parse_code("DATA_LOSS").unwrap()];
    })
    .await;
    let check = async |states: usize, expected: &str| {
        let client = Arc::new(Progress::default());
        let arguments = format!(r#"{{"id":-1,"states":{states}}}"#);
        let mut call = Call::tool(shop.tool("WatchOrder"), Json::parse(arguments).unwrap());
        call.client = client.clone();
        let failed = run(&shop.backend, call).await.map_err(described).unwrap_err();
        assert!(failed.starts_with(&format!("execution_failed: {expected}")), "{failed}");
        assert_eq!(client.0.lock().unwrap().len(), states);
    };
    check(0, "3 attempts exhausted: gRPC status DATA_LOSS").await;
    check(2, "gRPC status DATA_LOSS").await;
}

#[tokio::test]
async fn stream_that_is_open_at_the_deadline_is_cut() {
    let shop = Shop::start(|options| options.delivery.attempt_time = Duration::from_secs(3)).await;
    let cut = shop.call("WatchOrder", r#"{"states":2,"delay":"60s"}"#).await.unwrap();
    assert_eq!(structured(&cut)["messages"].as_array().unwrap().len(), 2);
    assert!(cut.contains("The stream was still open at the deadline: later messages are left out."), "{cut}");
    until_written(&shop.server, "cancelled").await;
    let late = shop.call("WatchOrder", r#"{"delay":"60s"}"#).await.unwrap_err();
    assert!(late.starts_with("timeout: "), "{late}");
}

/// The names of 5.5 million values of an enum, which have 5.5 MB in a message, have more than 64 MiB in JSON.
const LONG_AS_JSON: &str = r#"{"states":1,"formerStates":5500000}"#;

#[tokio::test]
async fn long_json_of_a_short_message_is_bounded() {
    let shop = Shop::start(|options| options.delivery.response_bytes = 8 << 20).await;
    assert_eq!(
        shop.call("GetOrder", LONG_AS_JSON).await.unwrap_err(),
        "execution_failed: The response is larger than 67108864 bytes [response larger than 67108864 bytes]"
    );
    let cut = shop.call("WatchOrder", LONG_AS_JSON).await.unwrap();
    assert_eq!(structured(&cut), serde_json::json!({"messages": [], "truncated": true}));
    assert!(cut.contains("it exceeds `maxBytes`"), "{cut}");
}

#[tokio::test]
async fn json_is_part_of_the_budget_while_it_grows() {
    let shop = Shop::start(|options| {
        options.delivery.response_bytes = 8 << 20;
        options.budget = toolyard_net::budget::ByteBudget::new(32 << 20);
    })
    .await;
    let refused = shop.call("GetOrder", LONG_AS_JSON).await.unwrap_err();
    assert!(refused.starts_with("unavailable: There is no memory left for the response"), "{refused}");
}

#[tokio::test]
async fn connection_that_breaks_during_a_call_is_reported() {
    let Shop { server, backend } = Shop::start(|_| {}).await;
    let shop = Arc::new(backend);
    let tool = names(&shop.catalog().borrow().clone())
        .into_iter()
        .find(|it| it.contains("GetOrder"))
        .unwrap()
        .to_owned();
    let pending = tokio::spawn({
        let shop = shop.clone();
        async move {
            let call = Call::tool(tool, Json::parse(r#"{"delay":"60s"}"#).unwrap());
            run(&shop, call).await.map_err(described)
        }
    });
    until_written(&server, "waiting").await;
    drop(server);
    let broken = pending.await.unwrap().unwrap_err();
    assert!(broken.starts_with("unavailable: The connection to the tool's server broke ["), "{broken}");
    until_async("the failure is known", || shop.last_failure().is_some()).await;
}
