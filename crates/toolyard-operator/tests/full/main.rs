//! Scripts in pods: the network filter on this kernel, all responses of a mocked cluster, and a real API server.

#![expect(clippy::unwrap_used, reason = "a failed helper fails the test")]

mod answers;
mod chart;
mod cluster;
mod health;
mod kubeconfig;
mod mock;
mod network_filter;
mod pip_wheels;
mod registry_requests;
mod tool_registry;
mod tool_requests;

use std::time::Duration;

use toolyard_core::script::PythonScript;

fn script(call_id: &str) -> PythonScript {
    PythonScript {
        call_id: call_id.to_owned(),
        source: "print(1)".to_owned(),
        input: None,
        timeout: Duration::from_secs(30),
        packages: Vec::new(),
        trace_parent: None,
    }
}
