//! Scheduled tasks in running gateways: rights and quotas of keys, webhooks, notifications, and several gateways.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{sleep, timeout};
use toolyard_core::Caller;
use toolyard_core::store::Store;
use toolyard_schedule::{ScheduleOwner, Schedules};
use toolyard_server::RunningGateway;
use toolyard_server::keys::record;
use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions};
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient, WireEventStream};

use crate::audit::records;
use crate::gateway::{call, manifest, started, started_on};
use crate::keyed_gateway::{KeyedGateway, memory, short};

/// Content of the `Toolyard` document: tasks may fire every second, and have this action.
fn process(action: &str) -> String {
    let action = if action.is_empty() { String::new() } else { format!(", action: {{{action}}}") };
    format!(
        "builtins: {{scripts: {{enabled: false}}, schedules: {{timeZone: UTC, minInterval: 1s, check: 50ms{action}}}}}"
    )
}

const SEARCH: &str = "tool: {name: search, arguments: {q: '{name} at {time}'}}";

/// Schedules a task of a key that fires every second.
async fn schedule(gateway: &KeyedGateway, key: &str, name: &str) {
    let task = json!({"name": name, "cron": "* * * * * *", "description": "Go."});
    let body = json!({"arguments": task}).to_string();
    let response = gateway.ask(key, "POST /api/v1/tools/schedule_task/call", &body).await;
    assert!(response.body.contains(&format!("Scheduled task '{name}'")), "{}", response.body);
}

/// A server with the tool `search`.
fn search_server() -> TestUpstream {
    let answer = |request: &ReceivedRequest| {
        ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"found"}]}"#)
    };
    let search = r#"{"name":"search","inputSchema":{"type":"object"}}"#;
    TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[search], answer))
}

fn id(key: &str) -> &str {
    key.split('_').nth(1).expect("the id of a key")
}

/// The outcomes and results of a key's runs, newest first.
async fn runs(store: &Arc<dyn Store>, key: &str) -> Vec<String> {
    let owner = ScheduleOwner::of(&Caller {
        principal: (!key.is_empty()).then(|| id(key).into()),
        ..Caller::default()
    });
    let (_, runs) = Schedules::new(store.clone(), store.clone()).list(&owner).await.expect("a store");
    runs.iter().map(|run| format!("{}: {}", run.outcome.word(), run.result)).collect()
}

/// Waits for a run with this outcome and result.
async fn run_recorded(store: &Arc<dyn Store>, key: &str, expected: &str) {
    let waiting = async {
        while !runs(store, key).await.iter().any(|run| run.contains(expected)) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout(Duration::from_secs(60), waiting).await.is_err() {
        panic!("{expected:?} is not in {:?}", runs(store, key).await);
    }
}

#[tokio::test]
async fn operators_see_and_cancel_the_tasks_of_all_keys() {
    let gateway = KeyedGateway::start(&process("")).await;
    let admin = gateway.key_for("admin").await;
    let [one, other] = [gateway.key_for("tools:* rest").await, gateway.key_for("tools:* rest").await];
    schedule(&gateway, &one, "report").await;
    schedule(&gateway, &other, "report").await;
    let list = async || {
        let response = gateway.ask(&admin, "GET /api/v1/schedules", "").await;
        serde_json::from_str::<Value>(&response.body).expect("JSON")
    };
    let seen = list().await;
    let tasks = seen["tasks"].as_array().expect("tasks");
    let mut keys: Vec<_> = tasks.iter().map(|task| task["key"]["id"].as_str().expect("a key")).collect();
    keys.sort_unstable();
    let mut expected = [id(&one), id(&other)];
    expected.sort_unstable();
    assert_eq!((keys, &seen["enabled"], &seen["timeZone"]), (expected.to_vec(), &json!(true), &json!("UTC")));
    let of_one = tasks.iter().find(|task| task["key"]["id"] == id(&one)).expect("a task");
    let path = of_one["id"].as_str().expect("an id");

    run_recorded(&gateway.store, &one, "Go.").await;
    let runs = gateway.ask(&admin, &format!("GET /api/v1/schedules/{path}/runs"), "").await;
    assert!(runs.body.contains(r#""outcome":"succeeded","result":"Go.""#), "{}", runs.body);

    let cancel = format!("DELETE /api/v1/schedules/{path}");
    assert_eq!(gateway.ask(&one, &cancel, "").await.head.status(), 403);
    assert_eq!(gateway.ask(&admin, &cancel, "").await.head.status(), 200);
    assert_eq!(gateway.ask(&admin, &cancel, "").await.head.status(), 404);
    let left = list().await;
    assert_eq!(left["tasks"].as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left["tasks"][0]["key"]["id"], id(&other));
    let is_recorded = async {
        let audit = "GET /api/v1/audit?action=task_cancelled";
        while !gateway.ask(&admin, audit, "").await.body.contains(r#""name":"report""#) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), is_recorded).await.expect("a record of the cancellation");
}

fn calls_of(task: &'static str) -> impl Fn(&toolyard_testing::upstream::RequestLog) -> usize {
    move |log| {
        let of_task = |request: &&ReceivedRequest| {
            request.method() == "tools/call" && request.body.contains(&format!("{task} at"))
        };
        log.requests.iter().filter(of_task).count()
    }
}

#[tokio::test]
async fn task_runs_with_the_scopes_of_its_key() {
    let gateway = KeyedGateway::start(&process(SEARCH)).await;
    let all = gateway.key_for("tools:* rest").await;
    let own_tools_only = gateway.key_for("tools:builtins/* rest").await;
    schedule(&gateway, &all, "first").await;
    schedule(&gateway, &own_tools_only, "second").await;
    run_recorded(&gateway.store, &all, "succeeded: found").await;
    run_recorded(&gateway.store, &own_tools_only, "failed: Unknown tool: search").await;
    let [_, web] = &gateway.upstreams;
    web.saw(|log| calls_of("first")(log) > 0, |log| assert_eq!(calls_of("second")(log), 0)).await;
}

#[tokio::test]
async fn tasks_of_a_revoked_key_do_not_run() {
    let gateway = KeyedGateway::start(&process(SEARCH)).await;
    let (revoked, other) = (gateway.key_for("tools:* rest").await, gateway.key_for("tools:* rest").await);
    schedule(&gateway, &revoked, "first").await;
    schedule(&gateway, &other, "second").await;
    let [_, web] = &gateway.upstreams;
    web.saw(|log| calls_of("first")(log) > 0, |_| ()).await;
    record::revoke(&*gateway.store, id(&revoked)).await.expect("a store");
    // A run that was claimed before may be under way.
    let removed = async {
        let owner = ScheduleOwner::of(&Caller { principal: Some(id(&revoked).into()), ..Caller::default() });
        let schedules = Schedules::new(gateway.store.clone(), gateway.store.clone());
        while !schedules.list(&owner).await.expect("a store").0.is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), removed).await.expect("the tasks are removed");
    let (first, second) = web.now(|log| (calls_of("first")(log), calls_of("second")(log)));
    web.saw(|log| calls_of("second")(log) > second + 2, |log| assert_eq!(calls_of("first")(log), first))
        .await;
}

#[tokio::test]
async fn runs_count_against_the_quota_of_the_key() {
    let gateway = KeyedGateway::start(&process(SEARCH)).await;
    let key = gateway.key(r#"{"name":"k","scopes":["tools:*","rest"],"calls":"2"}"#).await;
    schedule(&gateway, &key, "first").await;
    run_recorded(&gateway.store, &key, "failed: quota of 2 exhausted").await;
    let [_, web] = &gateway.upstreams;
    assert_eq!(web.now(calls_of("first")), 1);
    // Without an action, a run counts as well.
    let gateway = KeyedGateway::start(&process("")).await;
    let key = gateway.key(r#"{"name":"k","scopes":["tools:*","rest"],"calls":"2"}"#).await;
    schedule(&gateway, &key, "first").await;
    run_recorded(&gateway.store, &key, "failed: quota of 2 exhausted").await;
    assert_eq!(runs(&gateway.store, &key).await.last().map(String::as_str), Some("succeeded: Go."));
}

#[tokio::test]
async fn lists_are_those_of_the_key() {
    let gateway = KeyedGateway::start(&process("")).await;
    let (one, other) = (gateway.key_for("tools:* rest").await, gateway.key_for("tools:* rest").await);
    schedule(&gateway, &one, "first").await;
    for (key, expected) in [(&one, "1 task scheduled"), (&other, "No scheduled tasks.")] {
        let list = gateway.ask(key, "POST /api/v1/tools/list_scheduled_tasks/call", "{}").await;
        assert!(list.body.contains(expected), "{}", list.body);
    }
    let cancel = "POST /api/v1/tools/cancel_scheduled_task/call";
    let cancelled = gateway.ask(&other, cancel, r#"{"arguments":{"name":"first"}}"#).await;
    assert!(cancelled.body.contains("No scheduled task named 'first' was found."), "{}", cancelled.body);
    let unscoped = gateway.key_for("tools:web/* rest").await;
    assert_eq!(
        short(&gateway.ask(&unscoped, cancel, r#"{"arguments":{"name":"first"}}"#).await, ""),
        "404 tool_not_found"
    );
}

/// HMAC-SHA256 (RFC 2104), computed independently of the gateway.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let pad =
        |byte: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or_default() ^ byte).collect() };
    let inner = Sha256::digest([&pad(0x36)[..], message].concat());
    Sha256::digest([&pad(0x5c)[..], &inner[..]].concat()).to_vec()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let is_digit = digit <= chunk.len();
            text.push(if is_digit {
                char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[tokio::test]
async fn webhook_is_signed() {
    const SECRET: &str = "a secret of the webhook that is long";
    let receiver = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(202, "", "taken"));
    let action = format!(
        "webhook: {{url: 'http://{}/hook?t=1', secret: '{SECRET}', private: true}}",
        receiver.address
    );
    let gateway = KeyedGateway::start(&process(&action)).await;
    let key = gateway.key_for("tools:* rest").await;
    schedule(&gateway, &key, "first").await;
    let request = receiver.saw(|log| !log.requests.is_empty(), |log| log.requests[0].clone()).await;
    assert!(request.head.start.starts_with("POST /hook?t=1 "), "{}", request.text());
    let header = |name: &str| request.head.header(name).unwrap_or_default().to_owned();
    let signed = format!("{}.{}.{}", header("webhook-id"), header("webhook-timestamp"), request.body);
    assert_eq!(
        header("webhook-signature"),
        format!("v1,{}", base64(&hmac(SECRET.as_bytes(), signed.as_bytes())))
    );
    assert!(header("user-agent").starts_with("toolyard/"), "{}", request.text());
    let mut body: Value = serde_json::from_str(&request.body).unwrap();
    let time = body["data"]["time"].take();
    assert!(time.as_str().unwrap().ends_with("+00:00"), "{time}");
    assert_eq!(body["type"], "task.due");
    assert_eq!(body["data"], json!({"name": "first", "description": "Go.", "time": null, "key": id(&key)}));
    run_recorded(&gateway.store, &key, "succeeded: status 202 taken").await;
}

#[tokio::test]
async fn webhook_to_a_private_address_needs_permission() {
    let receiver = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(202, "", ""));
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", receiver.address.port());
        let action = format!("webhook: {{url: '{url}', secret: 'a secret of the webhook that is long'}}");
        let server = search_server();
        let gateway = started(&manifest(&[("web", server.address, "")], &process(&action))).await;
        let arguments = r#"{"name":"first","cron":"* * * * * *","description":"Go."}"#;
        call(&gateway, "schedule_task", arguments).await.unwrap();
        let listed = async {
            while !call(&gateway, "list_scheduled_tasks", "{}")
                .await
                .unwrap()
                .contains("failed: cannot send the webhook: not a public address")
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), listed).await.expect("the run is recorded");
    }
    assert_eq!(receiver.now(|log| log.requests.len()), 0);
}

#[tokio::test]
async fn runs_are_audited_for_each_action() {
    let receiver = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::http(503, "", ""));
    let webhook = format!(
        "webhook: {{url: 'http://{}/', secret: 'a secret of the webhook that is long', private: true}}",
        receiver.address
    );
    let mut lines = Vec::new();
    for action in ["", SEARCH, &webhook] {
        let gateway = KeyedGateway::start(&format!("allowUnauthenticated: true, {}", process(action))).await;
        let key = gateway.key_for("tools:* rest").await;
        schedule(&gateway, &key, "first").await;
        let fired = records(&gateway, "?action=task_fired&limit=1", 1).await;
        lines.extend(fired.iter().map(|line| line.replace(id(&key), "(id)")));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"action":"task_fired","requestId":"(made)","principal":"(id)","keyName":"a key","kind":"schedule","name":"first","outcome":"ok"}
    {"action":"task_fired","requestId":"(made)","principal":"(id)","keyName":"a key","kind":"schedule","name":"first","outcome":"ok"}
    {"action":"task_fired","requestId":"(made)","principal":"(id)","keyName":"a key","kind":"schedule","name":"first","outcome":"failed"}
    "#);
    let gateway = KeyedGateway::start(&format!("audit: {{enabled: false}}, {}", process(""))).await;
    let key = gateway.key_for("tools:* rest admin").await;
    schedule(&gateway, &key, "first").await;
    run_recorded(&gateway.store, &key, "succeeded: Go.").await;
    let trail = gateway.ask(&key, "GET /api/v1/audit?action=task_fired", "").await;
    assert!(trail.body.contains(r#""records":[]"#), "{}", trail.body);
}

async fn check_updated(stream: &mut WireEventStream, uri: &str) {
    let message = timeout(Duration::from_secs(60), stream.message()).await.expect("a message").unwrap();
    assert!(
        message.contains("notifications/resources/updated") && message.contains(&format!(r#""uri":"{uri}""#)),
        "{message}"
    );
}

#[tokio::test]
async fn subscribers_of_both_eras_are_notified_of_runs() {
    const TASK: &str = "toolyard://schedules/first";
    let server = search_server();
    let gateway = started(&manifest(&[("web", server.address, "")], &process(""))).await;
    let address = gateway.address();
    let mut legacy = WireClient::in_session(address).await;
    let mut of_legacy = WireClient::new(address, legacy.mode.clone()).await.changes().await;
    let answer = legacy.ask("resources/subscribe", &format!(r#"{{"uri":"{TASK}"}}"#)).await.body;
    assert!(answer.contains(r#""result":{}"#), "{answer}");
    let filter = r#""notifications":{"resourceSubscriptions":["toolyard://schedules"]}"#;
    let modern = WireClient::new(address, ClientMode::Modern).await;
    let mut of_modern =
        modern.open("subscriptions/listen", &format!(r#"{{{filter},"_meta":{{{MODERN_META}}}}}"#)).await;
    assert!(of_modern.message().await.unwrap().contains("toolyard://schedules"));
    let arguments = r#"{"name":"First","cron":"* * * * * *","description":"Say hello."}"#;
    call(&gateway, "schedule_task", arguments).await.unwrap();
    // The task itself, its claim, and its result.
    for _ in 0..3 {
        check_updated(&mut of_legacy, TASK).await;
        check_updated(&mut of_modern, "toolyard://schedules").await;
    }
    let answer = legacy.ask("resources/read", &format!(r#"{{"uri":"{TASK}"}}"#)).await.body;
    assert!(answer.contains("First: succeeded") && answer.contains("Say hello."), "{answer}");
    let answer = legacy.ask("resources/read", r#"{"uri":"toolyard://schedules/other"}"#).await.body;
    assert!(answer.contains(r#""error""#), "{answer}");
}

async fn postgres(server: &PostgresServer) -> Arc<dyn Store> {
    let url = PostgresUrl::parse(&server.url()).expect("a URL");
    toolyard_store::open(&StoreOptions::at(DatabaseLocation::Postgres(url))).await.expect("a store")
}

/// The calls of each task and time.
fn calls_by_firing(upstream: &TestUpstream) -> HashMap<String, usize> {
    upstream.now(|log| {
        let mut calls = HashMap::new();
        for request in log.requests.iter().filter(|request| request.method() == "tools/call") {
            *calls.entry(request.params().get("arguments").get("q").plain()).or_default() += 1;
        }
        calls
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_on_one_postgresql_fire_each_time_once() {
    let server = PostgresServer::start();
    let upstream = search_server();
    let manifest = manifest(&[("web", upstream.address, "")], &process(SEARCH));
    let mut gateways: Vec<RunningGateway> = Vec::new();
    for _ in 0..2 {
        gateways.push(started_on(&postgres(&server).await, &manifest).await);
    }
    for number in 0..6 {
        let arguments =
            json!({"name": format!("t{number}"), "cron": "* * * * * *", "description": "Go."}).to_string();
        call(&gateways[number % 2], "schedule_task", &arguments).await.unwrap();
    }
    upstream.saw(|log| log.count("tools/call") >= 40, |_| ()).await;
    // One gateway ends, and the other one goes on.
    gateways.remove(0).stop().await;
    let before = upstream.now(|log| log.count("tools/call"));
    upstream.saw(|log| log.count("tools/call") >= before + 20, |_| ()).await;
    gateways.remove(0).stop().await;
    let calls = calls_by_firing(&upstream);
    assert!(calls.values().all(|calls| *calls == 1), "{calls:?}");
    for number in 0..6 {
        assert!(calls.keys().any(|firing| firing.starts_with(&format!("t{number} "))), "{calls:?}");
    }
}

#[tokio::test]
async fn task_survives_a_restart() {
    let store = memory().await;
    let server = search_server();
    let manifest = manifest(&[("web", server.address, "")], &process(""));
    let gateway = started_on(&store, &manifest).await;
    let arguments = r#"{"name":"first","cron":"* * * * * *","description":"Go."}"#;
    call(&gateway, "schedule_task", arguments).await.unwrap();
    gateway.stop().await;
    let before = runs(&store, "").await.len();
    let _gateway = started_on(&store, &manifest).await;
    let more = async {
        while runs(&store, "").await.len() <= before {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), more).await.expect("it runs again");
}

#[tokio::test]
async fn schedules_are_off_without_their_section() {
    for builtins in ["builtins: {}", "builtins: {schedules: {enabled: false}}"] {
        let server = search_server();
        let gateway = started(&manifest(&[("web", server.address, "")], builtins)).await;
        let error = call(&gateway, "list_scheduled_tasks", "{}").await.expect_err("there is no such tool");
        assert!(error.to_string().starts_with("Unknown tool: list_scheduled_tasks"), "{error}");
    }
}
