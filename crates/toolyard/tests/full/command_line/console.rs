//! `toolyard console`.

use serde_json::{Value, json};

use super::toolyard_with;
use crate::support::gateway::TestGateway;

#[test]
fn link_leads_to_the_address_of_the_console() {
    let gateway = TestGateway::with_settings(&[], json!({"console": {"listen": "127.0.0.1:0"}}));
    let status: Value = serde_json::from_str(&gateway.get("/api/v1/status").body).unwrap();
    let listeners = status["listeners"].as_array().unwrap();
    let console = listeners.iter().find(|listener| listener["protocol"] == "console").unwrap();
    let expected = format!("http://{}/", console["address"].as_str().unwrap());
    let link = toolyard_with(&["console", "--url", &gateway.url()]).to_string();
    assert_eq!(link.lines().next(), Some(&*expected), "{link}");
}

#[test]
fn link_leads_to_the_gateway_without_an_address_of_its_own() {
    let gateway = TestGateway::with_settings(&[], json!({}));
    let link = toolyard_with(&["console", "--url", &gateway.url()]).to_string();
    assert_eq!(link.lines().next(), gateway.url().strip_suffix("mcp"), "{link}");
}
