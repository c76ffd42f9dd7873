//! Access to the network of the machine.

use std::net::TcpListener;
use std::sync::Arc;

use toolyard_functions::code::{FunctionCode, SourceLanguage};
use toolyard_functions::runtime::FunctionRuntime;

use crate::setup::{answer, code, options, run};

const CONNECTS: &str = "
import socket
def cortexone_handler(event, context):
    try:
        socket.create_connection(('127.0.0.1', event['port']), 5)
        return 'connected'
    except OSError as error:
        return type(error).__name__";

fn python(network: bool) -> Arc<FunctionCode> {
    Arc::new(FunctionCode { network, ..code(SourceLanguage::Python, CONNECTS) })
}

async fn runtimes(host_network: bool) -> FunctionRuntime {
    let mut options = options().await;
    options.host_network = host_network;
    FunctionRuntime::new(options)
}

fn event(listener: &TcpListener) -> String {
    format!(r#"{{"port":{}}}"#, listener.local_addr().unwrap().port())
}

#[tokio::test]
async fn python_has_the_host_network_only_if_enabled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for (allowed, wanted, expected) in [(true, true, "connected"), (true, false, "PermissionError")] {
        let answered = answer(run(&runtimes(allowed).await, &python(wanted), &event(&listener)).await);
        assert_eq!(answered, format!("{expected:?}"), "{allowed} {wanted}");
    }
    let refused = run(&runtimes(false).await, &python(true), &event(&listener)).await.unwrap_err();
    assert!(!refused.may_have_run(), "{refused:?}");
    for part in ["the function cannot be loaded", "loopback", "`functions: {hostNetwork: true}`"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
}

#[tokio::test]
async fn python_without_network_needs_no_host_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let answered = answer(run(&runtimes(false).await, &python(false), &event(&listener)).await);
    assert_eq!(answered, "\"PermissionError\"");
}
