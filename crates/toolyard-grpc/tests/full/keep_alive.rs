//! A server that vanishes without closing its connections.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use toolyard_core::{Backend, Call, Json};
use toolyard_grpc::client::{GrpcBackend, GrpcChannel, GrpcHttpClient};
use toolyard_net::http2::KeepAlivePings;
use toolyard_testing::wait::until_async;

use crate::support::{ShopServer, call, cause, described, names, options, ready, run};

/// Starts a backend whose attempts have so much time that only pings notice a stopped server.
async fn backend(server: &ShopServer) -> Arc<GrpcBackend> {
    let pings = KeepAlivePings { interval: Duration::from_millis(100), timeout: Duration::from_millis(300) };
    let mut options = options(&server.address, None);
    let client = GrpcHttpClient::new(None, Some(pings)).unwrap();
    let address = server.address.parse().unwrap();
    options.delivery.channel = GrpcChannel::new(client, &address, false, options.budget.clone());
    options.delivery.attempt_time = Duration::from_secs(600);
    let backend = Arc::new(GrpcBackend::start(options));
    ready(&backend).await;
    backend
}

fn tool(backend: &GrpcBackend, method: &str) -> String {
    let catalog = backend.catalog().borrow().clone();
    names(&catalog).into_iter().find(|name| name.contains(method)).unwrap().to_owned()
}

#[tokio::test]
async fn stopped_server_is_noticed_by_pings_and_comes_back() {
    let server = ShopServer::start(&["pings"]);
    let backend = backend(&server).await;
    let get_order = tool(&backend, "GetOrder");
    let pending = tokio::spawn({
        let (backend, tool) = (backend.clone(), get_order.clone());
        let arguments = Json::parse(r#"{"delay":"600s"}"#).unwrap();
        async move { run(&backend, Call::tool(tool, arguments)).await }
    });
    until_async("the call", || server.process.stderr.text().contains("waiting")).await;

    server.process.signal(Signal::STOP);
    let expected = "unavailable: The connection to the tool's server broke [no answer to pings]";
    let lost = pending.await.unwrap().unwrap_err();
    assert!(lost.code().row().retryable);
    assert_eq!(described(lost), expected);
    let (reason, _) = backend.last_failure().unwrap();
    assert_eq!(cause(&reason), "timeout: the connection to the server broke: no answer to pings");
    // The system still accepts connections for the stopped process.
    let late = call(&backend, &get_order, "{}").await.unwrap_err();
    assert_eq!(late, expected);

    server.process.signal(Signal::CONT);
    let order = call(&backend, &get_order, r#"{"id":7}"#).await.unwrap();
    assert!(order.contains(r#""structuredContent":{"id":"7""#), "{order}");
    ready(&backend).await;
}
