//! Election of a leader at a real API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use toolyard_operator::controller::{LeaderElection, OperatorConfig};

use super::operator::{RunningOperator, ScriptedTools, until};
use super::server::Server;

fn config(identity: &str) -> OperatorConfig {
    let election = LeaderElection {
        lease: "operator".to_owned(),
        namespace: "default".to_owned(),
        identity: identity.to_owned(),
        duration: Duration::from_secs(2),
    };
    OperatorConfig { leader_election: Some(election), ..OperatorConfig::default() }
}

#[tokio::test]
async fn lease_moves_when_its_holder_is_killed_or_stopped() {
    let server = Server::start().await;
    let admin = server.admin().await;
    let leases = Api::<Lease>::namespaced(admin.clone(), "default");
    let holder = async || {
        let lease = leases.get_opt("operator").await.ok()??;
        lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
    };
    let is_held_by = |name: &'static str| {
        let holder = &holder;
        async move { until(name, async || holder().await.filter(|holder| holder == name)).await }
    };
    let tools = Arc::new(ScriptedTools::default());
    let start = async |name| RunningOperator::start(server.master(name).await, config(name), &tools);

    let first = start("first").await;
    is_held_by("first").await;
    let second = start("second").await;
    // The second replica has seen the Lease, and does not lead.
    until("the second replica asks", async || {
        let requests = server.requests_of("second");
        requests.iter().filter(|request| request.resource == "leases").nth(1).map(drop)
    })
    .await;
    assert_eq!(holder().await.as_deref(), Some("first"));
    assert!(
        server.requests_of("second").iter().all(|request| request.resource != "customresourcedefinitions")
    );

    drop(first);
    is_held_by("second").await;
    let third = start("third").await;
    second.stop().await;
    is_held_by("third").await;
    let lease = leases.get("operator").await.unwrap().spec.unwrap();
    assert_eq!(lease.lease_transitions, Some(2));
    drop(third);
}
