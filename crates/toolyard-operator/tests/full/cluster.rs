//! Scripts at a real API server, with the account and the role of `deploy/kubernetes/scripts.yaml`. The tests set the
//! status of pods in the role of a node.

mod agent_injection;
mod complete_example;
mod deployed;
mod installation;
mod language_tool;
mod leader;
pub(crate) mod operator;
mod rbac;
mod recorder;
mod server;
mod tool_registry;
mod webhook;

use std::time::Duration;

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use toolyard_core::script::{PythonScript, ScriptExecutor};
use toolyard_operator::{PodOptions, PodRunner, script::pod};

use self::server::Server;
use crate::mock::{ended, running, status};
use crate::script;

const GUID: &str = "0123456789abcdef0123456789abcdef";

/// A server with the deployed objects, and the clients of the tests.
struct Deployment {
    server: Server,
    admin: Client,
    pods: Api<Pod>,
    gateway: Client,
}

impl Deployment {
    async fn new() -> Self {
        let server = Server::start().await;
        let admin = server.admin().await;
        let applied = deployed::apply(&admin).await;
        assert_eq!(applied.len(), 8);
        let token = deployed::token(&admin, "toolyard", "toolyard").await;
        let gateway = server.with_token(&token).await;
        let pods = Api::namespaced(admin.clone(), "rockbot-scripts");
        Self { server, admin, pods, gateway }
    }

    fn runner(&self, options: PodOptions) -> PodRunner {
        PodRunner::new(self.gateway.clone(), options).unwrap()
    }

    /// Waits for the pod of a call.
    async fn pod_of(&self, call_id: &str) -> String {
        let params = ListParams::default().labels(&format!("rockbot.dev/tool-call-id={call_id}"));
        loop {
            let pod = self.pods.list(&params).await.unwrap().items.pop();
            if let Some(name) = pod.and_then(|pod| pod.metadata.name) {
                return name;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn is_gone(&self, name: &str) {
        while self.pods.get_opt(name).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Runs a script whose pod gets these states one after the other, and returns the result.
    async fn result_of(&self, runner: &PodRunner, script: PythonScript, statuses: &[Value]) -> String {
        let call_id = script.call_id.clone();
        let node = async {
            let name = self.pod_of(&call_id).await;
            for status in statuses {
                deployed::set(&self.pods, &name, status).await;
            }
            name
        };
        let (outcome, name) = tokio::join!(runner.run(script), node);
        self.is_gone(&name).await;
        match outcome {
            Ok(outcome) => format!("{} {:?} {:?}", outcome.exit_code, outcome.output, outcome.stderr),
            Err(error) => format!("{} {error}", error.code().row().wire),
        }
    }
}

#[tokio::test]
async fn scripts_run_with_the_role_of_the_gateway() {
    let deployment = Deployment::new().await;
    let runner = deployment.runner(PodOptions::default());
    runner.check().await.unwrap();
    assert!(deployment.pods.list(&ListParams::default()).await.unwrap().items.is_empty());

    scripts_end(&deployment, &runner).await;
    dropped_script_is_deleted(&deployment, &runner).await;
    scripts_run_concurrently(&deployment, &runner).await;
    externally_deleted_pod_is_lost(&deployment, &runner).await;
    rejected_options_are_reported(&deployment).await;
    orphans_are_deleted(&deployment).await;
    exhausted_quota_is_an_error(&deployment, &runner).await;
}

async fn scripts_end(deployment: &Deployment, runner: &PodRunner) {
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let pulling = status("Pending", &json!({"waiting": {"reason": "ImagePullBackOff", "message": "no"}}));
    let mut overdue =
        status("Failed", &json!({"terminated": {"exitCode": 137, "startedAt": "2026-11-01T00:00:00Z"}}));
    overdue["reason"] = "DeadlineExceeded".into();
    for (call_id, statuses, expected) in [
        ("good", vec![running(), ended(0)], r#"0 "" """#),
        ("fast", vec![ended(0)], r#"0 "" """#),
        ("bad", vec![running(), ended(3)], r#"3 "" """#),
        ("fat", vec![status("Failed", &killed)], r#"137 "" "It exceeded its memory limit""#),
        ("slow", vec![running(), overdue], r#"-1 "" "It exceeded its time limit of 30 s""#),
        ("nowhere", vec![pulling], "unavailable The script's pod did not start: ImagePullBackOff"),
    ] {
        assert_eq!(deployment.result_of(runner, script(call_id), &statuses).await, expected, "{call_id}");
    }
    let script = PythonScript {
        packages: vec!["numpy".to_owned()],
        input: Some("$(HOME)".to_owned()),
        ..script("packed")
    };
    assert_eq!(deployment.result_of(runner, script, &[running(), ended(0)]).await, r#"0 "" """#);
}

async fn dropped_script_is_deleted(deployment: &Deployment, runner: &PodRunner) {
    let name = tokio::select! {
        outcome = runner.run(script("dropped")) => panic!("{outcome:?}"),
        name = deployment.pod_of("dropped") => name,
    };
    deployment.is_gone(&name).await;
    assert!(runner.wait_until_drained(Duration::from_secs(10)).await);
}

async fn scripts_run_concurrently(deployment: &Deployment, runner: &PodRunner) {
    let ids: Vec<_> = (0..8).map(|number| format!("many-{number}")).collect();
    let runs = ids.iter().map(|id| deployment.result_of(runner, script(id), &[])).map(Box::pin);
    let mut runs = futures_util::future::join_all(runs);
    let names = async {
        let mut names = Vec::new();
        for id in &ids {
            names.push(deployment.pod_of(id).await);
        }
        names
    };
    let names = tokio::select! {
        outcomes = &mut runs => panic!("{outcomes:?}"),
        names = names => names,
    };
    let refused = runner.run(script("ninth")).await.unwrap_err();
    assert_eq!(refused.message(), "Too many scripts are running: 8");
    let ends = async {
        for (code, name) in (0..).zip(&names) {
            deployed::set(&deployment.pods, name, &ended(code)).await;
        }
    };
    let (outcomes, ()) = tokio::join!(runs, ends);
    let expected: Vec<_> = (0..8).map(|code| format!(r#"{code} "" """#)).collect();
    assert_eq!(outcomes, expected);
}

async fn externally_deleted_pod_is_lost(deployment: &Deployment, runner: &PodRunner) {
    let thief = async {
        let name = deployment.pod_of("stolen").await;
        deployment.pods.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(runner.run(script("stolen")), thief);
    assert_eq!(outcome.unwrap_err().message(), "The script's pod was lost: Deleted");
}

async fn rejected_options_are_reported(deployment: &Deployment) {
    for options in [
        PodOptions { cpu: "much".to_owned(), ..PodOptions::default() },
        PodOptions { memory: "-1".to_owned(), ..PodOptions::default() },
        PodOptions { namespace: "default".to_owned(), ..PodOptions::default() },
        PodOptions { call_label: "no label".to_owned(), ..PodOptions::default() },
    ] {
        let error = deployment.runner(options.clone()).check().await.unwrap_err();
        assert_eq!(error.to_string(), "The cluster rejected the script's pod", "{options:?}");
    }
}

async fn orphans_are_deleted(deployment: &Deployment) {
    let ours = PodOptions { orphaned_after: Duration::ZERO, ..PodOptions::default() };
    let theirs = PodOptions { gateway: "other".to_owned(), ..ours.clone() };
    let brief = PythonScript { timeout: Duration::from_secs(1), ..script("orphan") };
    for (script, options, first) in
        [(&brief, &ours, 'a'), (&brief, &theirs, 'b'), (&script("young"), &ours, 'c')]
    {
        let guid = GUID.replacen('0', &first.to_string(), 1);
        deployment.pods.create(&PostParams::default(), &pod(script, options, &guid)).await.unwrap();
    }
    // A new runner deletes it after its lifetime.
    let mut runners = Vec::new();
    let left = || async { deployment.pods.list(&ListParams::default()).await.unwrap().items.len() };
    while left().await == 3 {
        runners.push(deployment.runner(ours.clone()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let left = deployment.pods.list(&ListParams::default()).await.unwrap().items;
    let whose: Vec<_> =
        left.iter().map(|pod| &pod.metadata.labels.as_ref().unwrap()["toolyard.dev/gateway"]).collect();
    assert_eq!(whose, ["other", "toolyard"]);
    assert_eq!(runners[0].sweep().await.unwrap(), 0);
}

/// The controller manager, which updates quotas, does not run.
async fn exhausted_quota_is_an_error(deployment: &Deployment, runner: &PodRunner) {
    let quotas = Api::<ResourceQuota>::namespaced(deployment.admin.clone(), "rockbot-scripts");
    let full = Patch::Merge(json!({"status": {"hard": {"pods": "12"}, "used": {"pods": "12"}}}));
    quotas.patch_status("scripts", &PatchParams::default(), &full).await.unwrap();
    // The server applies the quota with a delay.
    let mut refused = runner.check().await;
    while refused.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        refused = runner.check().await;
    }
    let error = runner.run(script("full")).await.unwrap_err();
    assert_eq!(error.message(), "The cluster has no room for another script");
}

#[tokio::test]
async fn role_of_the_gateway_has_minimal_permissions() {
    let deployment = Deployment::new().await;
    let (admin, server) = (&deployment.admin, &deployment.server);
    let agents = Api::<ServiceAccount>::namespaced(admin.clone(), "default");
    let agent = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}});
    agents.create(&PostParams::default(), &serde_json::from_value(agent).unwrap()).await.unwrap();
    let agent = server.with_token(&deployed::token(admin, "default", "agent").await).await;

    let verbs = ["create", "get", "list", "watch", "delete", "update", "patch", "deletecollection"];
    let resources = ["pods", "pods/log", "pods/status", "pods/exec", "pods/attach", "secrets", "configmaps"];
    let mut allowed = Vec::new();
    for namespace in ["rockbot-scripts", "default", "toolyard", "kube-system"] {
        for resource in resources {
            for verb in verbs {
                assert!(!may(&agent, namespace, resource, verb).await, "an agent may {verb} {resource}");
                if may(&deployment.gateway, namespace, resource, verb).await {
                    allowed.push(format!("{namespace}: {verb} {resource}"));
                }
            }
        }
    }
    insta::assert_snapshot!(allowed.join("\n"), @r#"
    rockbot-scripts: create pods
    rockbot-scripts: get pods
    rockbot-scripts: list pods
    rockbot-scripts: watch pods
    rockbot-scripts: delete pods
    rockbot-scripts: get pods/log
    rockbot-scripts: get pods/status
    "#);
    let runner = PodRunner::new(agent, PodOptions::default()).unwrap();
    let error = runner.run(script("agent")).await.unwrap_err();
    assert_eq!(error.message(), "The cluster rejected the script's pod");
    let runner = PodRunner::new(server::anonymous_client(server), PodOptions::default()).unwrap();
    assert!(runner.check().await.is_err());
    policies_find_the_pods(admin).await;
}

/// Returns the server's own access review.
async fn may(client: &Client, namespace: &str, resource: &str, verb: &str) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {
            "namespace": namespace, "resource": resource, "subresource": subresource, "verb": verb,
        }},
    });
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let review =
        reviews.create(&PostParams::default(), &serde_json::from_value(review).unwrap()).await.unwrap();
    review.status.unwrap().allowed
}

/// Labels of policies and pods are defined in different files.
async fn policies_find_the_pods(admin: &Client) {
    let policies = Api::<NetworkPolicy>::namespaced(admin.clone(), "rockbot-scripts");
    let policies = policies.list(&ListParams::default()).await.unwrap().items;
    let matching = |pod: &Pod| -> Vec<String> {
        let applies = |policy: &&NetworkPolicy| {
            selects(policy.spec.as_ref().unwrap().pod_selector.as_ref().unwrap(), pod)
        };
        policies.iter().filter(applies).map(|policy| policy.metadata.name.clone().unwrap()).collect()
    };
    let options = PodOptions::default();
    let packed = PythonScript { packages: vec!["numpy".to_owned()], ..script("a") };
    assert_eq!(matching(&pod(&script("a"), &options, GUID)), ["deny-all"]);
    assert_eq!(matching(&pod(&packed, &options, GUID)), ["deny-all", "packages"]);
    let open = PodOptions { allow_network: true, ..options };
    assert_eq!(matching(&pod(&script("a"), &open, GUID)), ["deny-all", "packages"]);
    let denied = policies[0].spec.as_ref().unwrap();
    assert_eq!(denied.policy_types.as_deref().unwrap(), ["Ingress", "Egress"]);
    assert!(denied.egress.is_none() && denied.ingress.is_none());
}

fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref().unwrap();
    selector.match_expressions.is_none()
        && selector.match_labels.iter().flatten().all(|(label, value)| labels.get(label) == Some(value))
}
