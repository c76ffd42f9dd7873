//! The gateway as the executor of a host's tools.

use std::sync::Arc;

use toolyard_bus::record::{GatewayExecutor, HostFunction, ToolRegistration};
use toolyard_core::Caller;

use crate::support::{CountingBackend, gateway};

#[tokio::test]
async fn gateway_executor_calls_tools() {
    let caller = Caller { principal: Some("k7".into()), ..Caller::default() };
    let executor = Arc::new(GatewayExecutor::new(gateway(CountingBackend::new()), caller));
    let check = async |tool: &str, arguments: Option<&str>, expected: &str| {
        let registration = ToolRegistration {
            name: tool.to_owned(),
            description: String::new(),
            parameters_schema: None,
            source: "test".to_owned(),
        };
        let function = HostFunction::new(registration, executor.clone(), None);
        assert_eq!(function.call(arguments).await.trim_end(), expected, "{tool} {arguments:?}");
    };
    check("read", Some(r#"{"text": "Ada"}"#), "read Ada by k7").await;
    check("fail", None, "Error: no such city").await;
    check(
        "read",
        Some(r#"{"text": 1}"#),
        r#"Error: Invalid arguments: /text: value is not of type "string""#,
    )
    .await;
    check("read", Some("Ada"), "Error: `arguments` must be a string that contains a JSON object").await;
    check("leave", Some("{}"), "Error: Tool 'leave' is not registered.").await;
}
