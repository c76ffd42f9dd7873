//! A server that speaks both eras, with errors and delays that no SDK produces at will.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::{Call, Caller, Client, ClientNotification, ErrorCode, Json, ToolError};
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra, initialized,
};

use crate::gateway::{gateway, result_text};

const READ_ONLY: &str =
    r#"{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#;
const WRITING: &str = r#"{"name":"write","inputSchema":{"type":"object"}}"#;

/// A client with these capabilities. The server never asks it.
#[derive(Debug)]
struct CapableClient(Json);

impl Client for CapableClient {
    fn capabilities(&self) -> Option<&Json> {
        Some(&self.0)
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, _: ClientNotification) {}
}

/// A gateway in front of a server of both eras.
struct EraGateway {
    running: RunningGateway,
    server: TestUpstream,
    /// True while the server opens sessions.
    opens: watch::Sender<bool>,
}

impl EraGateway {
    /// `answer` returns the member `error` or `result` of the answer to a call.
    async fn start(answer: fn(UpstreamEra) -> &'static str, process: &str) -> Self {
        let reply = move |era| {
            move |call: &ReceivedRequest| {
                ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{}}}"#, call.id(), answer(era)))
            }
        };
        let [legacy, modern] = [UpstreamEra::Legacy, UpstreamEra::Modern]
            .map(|era| ScriptedUpstream::new(era, &[READ_ONLY, WRITING], reply(era)));
        let opens = watch::Sender::new(true);
        let gate = opens.clone();
        let server = TestUpstream::start(move |request: &ReceivedRequest| {
            if era(request) == UpstreamEra::Modern {
                return modern.reply(request);
            }
            if request.method() == "initialize" {
                let mut gate = gate.subscribe();
                let opened = async move { gate.wait_for(|opens| *opens).await.map(drop).unwrap() };
                return initialized(request, "s").after(opened);
            }
            legacy.reply(request)
        });
        let running = gateway(&[("h", server.address, "")], process).await;
        Self { running, server, opens }
    }

    /// Calls a tool and returns the text of its result. `time` is that of the call, in milliseconds.
    async fn call(&self, tool: &str, client: &EraClient, time: Option<u64>) -> Result<String, ToolError> {
        let capabilities = Json::parse(client.capabilities.to_owned()).unwrap();
        let session = client.session.map(Arc::from);
        let call = Call {
            caller: Caller { session, principal: Some("p".into()), ..Caller::default() },
            deadline: time.map(|time| Instant::now() + Duration::from_millis(time)),
            client: Arc::new(CapableClient(capabilities)),
            ..Call::tool(tool, Json::parse("{}").unwrap())
        };
        result_text(self.running.gateway().invoke(call).await)
    }

    /// Returns the eras of the calls that the server received.
    fn received(&self) -> Vec<UpstreamEra> {
        let is_call = |request: &&ReceivedRequest| request.method() == "tools/call";
        self.server.now(|log| log.requests.iter().filter(is_call).map(era).collect())
    }
}

struct EraClient {
    session: Option<&'static str>,
    capabilities: &'static str,
}

const fn session(session: &'static str) -> EraClient {
    EraClient { session: Some(session), capabilities: r#"{"elicitation":{}}"# }
}

const STATELESS: EraClient = EraClient { session: None, capabilities: r#"{"elicitation":{}}"# };

fn era(request: &ReceivedRequest) -> UpstreamEra {
    match request.body.contains("io.modelcontextprotocol/protocolVersion") {
        true => UpstreamEra::Modern,
        false => UpstreamEra::Legacy,
    }
}

const DONE: &str = r#""result":{"content":[],"resultType":"complete"}"#;

/// A tool that fails in the modern era for lack of a channel.
fn asking(era: UpstreamEra) -> &'static str {
    match era {
        UpstreamEra::Legacy => DONE,
        UpstreamEra::Modern => r#""error":{"code":-32600,"message":"no channel"}"#,
    }
}

#[track_caller]
fn check_refusal(result: Result<String, ToolError>, reason: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable, "{error:?}");
    assert_eq!(error.message(), format!("No dedicated connection to the server: {reason}"));
    assert!(!error.may_have_run());
}

#[tokio::test]
async fn session_without_its_connection_is_refused_and_others_are_not() {
    for (process, time, reason) in [
        ("timeouts: {connect: 1s}", None, "timed out after 1 s"),
        ("", Some(500), "it was not open before the deadline of the call"),
    ] {
        let gateway = EraGateway::start(|_| DONE, process).await;
        gateway.opens.send_replace(false);
        check_refusal(gateway.call("write", &session("a"), time).await, reason);
        assert_eq!(gateway.received(), []);
        // What is sent to a client that needs no channel does not change.
        gateway.call("write", &STATELESS, None).await.unwrap();
        gateway.opens.send_replace(true);
        for name in ["b", "a"] {
            gateway.call("write", &session(name), None).await.unwrap();
        }
        assert_eq!(gateway.received(), [UpstreamEra::Modern, UpstreamEra::Legacy, UpstreamEra::Legacy]);
        gateway.running.stop().await;
    }
}

#[tokio::test]
async fn tool_that_needs_the_legacy_era_is_not_called_without_its_connection() {
    let gateway = EraGateway::start(asking, "").await;
    gateway.call("write", &STATELESS, None).await.unwrap_err();
    gateway.opens.send_replace(false);
    // Other capabilities need another connection.
    let client = EraClient { session: None, capabilities: r#"{"sampling":{}}"# };
    let refused = gateway.call("write", &client, Some(500)).await;
    check_refusal(refused, "it was not open before the deadline of the call");
    // The server is known to speak both eras, so that the error says what to do.
    let error = gateway.call("read", &client, Some(500)).await.unwrap_err();
    assert!(error.message().contains("Call it again"), "{error}");
    gateway.opens.send_replace(true);
    gateway.call("write", &client, None).await.unwrap();
    let eras = [UpstreamEra::Modern, UpstreamEra::Modern, UpstreamEra::Legacy];
    assert_eq!(gateway.received(), eras);
    gateway.running.stop().await;
}

#[tokio::test]
async fn slow_connection_is_waited_for() {
    let gateway = EraGateway::start(asking, "").await;
    gateway.opens.send_replace(false);
    let client = session("a");
    let opened = async {
        gateway.server.saw(|log| log.count("initialize") == 1, |_| ()).await;
        gateway.opens.send_replace(true);
    };
    let (result, ()) = tokio::join!(gateway.call("write", &client, None), opened);
    result.unwrap();
    assert_eq!(gateway.received(), [UpstreamEra::Legacy]);
    gateway.running.stop().await;
}

/// A read-only tool would be called again.
#[tokio::test]
async fn ordinary_failure_in_the_legacy_era_passes_unchanged() {
    let gateway = EraGateway::start(|_| r#""error":{"code":-32603,"message":"database locked"}"#, "").await;
    for tool in ["write", "read", "write"] {
        let error = gateway.call(tool, &session("a"), None).await.unwrap_err();
        assert_eq!(error.message(), "database locked");
    }
    assert_eq!(gateway.received(), [UpstreamEra::Legacy; 3]);
    gateway.running.stop().await;
}

/// The server refuses before it works, so that a tool with effects is called again at once.
#[tokio::test]
async fn call_that_lacks_a_declared_capability_is_made_in_the_legacy_era() {
    let gateway = EraGateway::start(
        |era| match era {
            UpstreamEra::Legacy => DONE,
            UpstreamEra::Modern => {
                r#""error":{"code":-32021,"message":"need","data":{"requiredCapabilities":{"elicitation":{}}}}"#
            }
        },
        "",
    )
    .await;
    for _ in 0..2 {
        gateway.call("write", &STATELESS, None).await.unwrap();
    }
    let eras = [UpstreamEra::Modern, UpstreamEra::Legacy, UpstreamEra::Legacy];
    assert_eq!(gateway.received(), eras);
    let sampling = EraClient { session: None, capabilities: r#"{"sampling":{}}"# };
    let error = gateway.call("read", &sampling, None).await.unwrap_err();
    assert_eq!(error.message(), "need");
    assert_eq!(gateway.received()[3..], [UpstreamEra::Modern]);
    gateway.running.stop().await;
}
