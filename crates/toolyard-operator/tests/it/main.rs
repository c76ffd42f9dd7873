//! Scripts in pods: what keeps them from the network, for real; every answer of a cluster, by a mock of its client; and
//! a real API server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod cluster;
mod kubeconfig;
mod mock;
mod wall;

use std::time::Duration;

use toolyard_core::script::Script;

fn script(call_id: &str) -> Script {
    Script {
        call_id: call_id.to_owned(),
        source: "print(1)".to_owned(),
        input: None,
        timeout: Duration::from_secs(30),
        packages: Vec::new(),
    }
}
