//! Hosted functions: the prices of their calls, and the errors and log entries of calls that never reach the function.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::{AccessGrant, CallAllowance, CallPrice, ScopePattern};
use toolyard_core::gate::GateSize;
use toolyard_core::gateway::Observers;
use toolyard_core::{
    BackendPhase, Call, CallTarget, Caller, Gateway, Json, MessageExchange, Outcome, Registry, ToolError,
    names::NameRegistry,
};
use toolyard_functions::code::{CallContext, FunctionCode, SourceLanguage};
use toolyard_functions::{
    CodeRunner, FolderExchange, FunctionExchange, FunctionHost, FunctionKind, FunctionProject, HostOptions,
    RunError, RunOutput, TestCase, VersionBump, VersionSelector,
};
use toolyard_manifest::{FunctionHandler, ProcessSettings};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_server::build::{FunctionExchanges, HandlerBuilder};
use toolyard_server::hosting::HostedFunctions;

use crate::keyed_gateway::{KeyedGateway, memory};

/// Answers `{statusCode, body}` with a fixed body; code whose source is `broken` fails to load.
struct ScriptedRuntime;

fn is_broken(code: &FunctionCode) -> bool {
    code.files.iter().any(|(_, source)| source == "broken")
}

impl CodeRunner for ScriptedRuntime {
    fn run<'a>(
        &'a self,
        code: &'a Arc<FunctionCode>,
        _: &'a Json,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<RunOutput, RunError>> {
        Box::pin(async {
            if is_broken(code) {
                return Err(RunError::NotLoaded { message: "line 1".to_owned() });
            }
            let answer =
                Json::parse(r#"{"jsonrpc":"2.0","id":1,"result":{},"statusCode":200,"body":"said"}"#);
            Ok(RunOutput { answer: answer.unwrap(), log: String::new() })
        })
    }

    fn load<'a>(&'a self, code: &'a Arc<FunctionCode>) -> BoxFuture<'a, Result<(), RunError>> {
        let broken = Err(RunError::NotLoaded { message: "line 1".to_owned() });
        Box::pin(std::future::ready(if is_broken(code) { broken } else { Ok(()) }))
    }
}

/// The charges that were not refunded, in millionths.
#[derive(Debug, Default)]
struct SpentCredit(AtomicU64);

impl CallAllowance for SpentCredit {
    fn check(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn take(&self, price: CallPrice) -> BoxFuture<'_, Result<(), ToolError>> {
        self.0.fetch_add(price.0, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back(&self, price: CallPrice) {
        self.0.fetch_sub(price.0, Ordering::SeqCst);
    }
}

async fn host() -> FunctionHost {
    FunctionHost::start(memory().await, Arc::new(ScriptedRuntime), HostOptions::default())
}

fn project(kind: FunctionKind, source: &str, price: &str) -> FunctionProject {
    let mut project = FunctionProject::from_source(kind, SourceLanguage::Lua, source.to_owned());
    project.price = price.parse().unwrap();
    project.tests = vec![TestCase { name: "any".into(), event: Json::null(), expect: None }];
    project
}

/// Makes a call, and returns its charge and its result.
async fn spend(gateway: &Gateway, target: CallTarget, arguments: &str) -> (u64, Result<Outcome, ToolError>) {
    let spent = Arc::new(SpentCredit::default());
    let everything: ScopePattern = "*".parse().unwrap();
    let grant = AccessGrant {
        scope: [everything].into_iter().collect(),
        allowance: Some(spent.clone()),
        ..AccessGrant::default()
    };
    let caller = Caller { grant: Some(Arc::new(grant)), ..Caller::default() };
    let call = Call { target, caller, ..Call::tool("", Json::parse(arguments.to_owned()).unwrap()) };
    let ended = gateway.invoke(call).await;
    (spent.0.load(Ordering::SeqCst), ended)
}

fn gateway(registry: Registry) -> Gateway {
    let size = GateSize { running: 10, waiting: 10 };
    let (_, registry) = watch::channel(Arc::new(registry));
    Gateway::new(registry, Gateway::layers(Observers::default(), size, None, None))
}

#[tokio::test]
async fn only_executed_events_are_charged() {
    let host = host().await;
    host.save_draft("mcp", &project(FunctionKind::Mcp, "fine", "5")).await.unwrap();
    host.save_draft("broken", &project(FunctionKind::Function, "broken", "5")).await.unwrap();
    let size = GateSize { running: 10, waiting: 10 };
    let gateway =
        gateway(Registry::default()).with_functions(Arc::new(HostedFunctions::new(host.clone(), size)));
    let check = async |id: &str, event: &str, cost: u64| {
        let target = CallTarget::Function(format!("{id}@draft").into());
        let (spent, _) = spend(&gateway, target, event).await;
        assert_eq!(spent, cost, "{id} {event}");
    };
    check("mcp", r#"{"id":1,"method":"ping"}"#, 5_000_000).await;
    check("mcp", r#"{"method":"notifications/initialized"}"#, 0).await;
    check("broken", "{}", 0).await;
    host.stop(Duration::from_secs(10)).await;
    let mut costs = Vec::new();
    for id in ["mcp", "broken"] {
        let entries = host.logs(id, toolyard_functions::LogQuery::default()).await.unwrap().entries;
        costs.extend(entries.into_iter().map(|entry| entry.cost));
    }
    assert_eq!(costs, ["0", "5", "0"]);
}

/// Gives the same message exchange to every handler.
struct FixedExchange(Mutex<Option<Arc<dyn MessageExchange>>>);

impl FunctionExchanges for FixedExchange {
    fn exchange(&self, _: &FunctionHandler) -> Arc<dyn MessageExchange> {
        self.0.lock().unwrap().take().unwrap()
    }
}

/// A handler with one tool, which runs on this exchange. `price` is the setting of the manifest.
fn handler(exchange: Arc<dyn MessageExchange>, price: &str) -> toolyard_core::registry::HandlerEntry {
    let handler = format!(
        "  - {{name: own, type: function, {price} functionConfig: {{id: own}}, \
         tool: {{name: own, description: Own, inputSchema: {{type: object}}}}}}\n"
    );
    let manifest = crate::gateway::manifest_of(&handler, "");
    let builder =
        HandlerBuilder::new(ProcessSettings::default(), ProcessTable::new(ProcessSpawner::Direct, 1))
            .unwrap();
    builder.with_functions(Arc::new(FixedExchange(Mutex::new(Some(exchange))))).build(&manifest.handlers[0])
}

async fn ready(handler: toolyard_core::registry::HandlerEntry) -> Gateway {
    let mut catalog = handler.backend.catalog();
    let catalog = catalog.wait_for(|catalog| catalog.phase == BackendPhase::Ready).await.unwrap().clone();
    gateway(Registry::assemble(&[(handler, catalog)], &mut NameRegistry::default()))
}

#[tokio::test]
async fn manifest_price_overrides_the_version_price() {
    let host = host().await;
    let publish = async |price: &str| {
        host.save_draft("own", &project(FunctionKind::Function, price, price)).await.unwrap();
        host.publish("own", VersionBump::Patch, None).await.unwrap();
    };
    publish("2").await;
    let exchange = || Arc::new(FunctionExchange::new(host.clone(), "own".into(), VersionSelector::Latest));
    let own = exchange();
    let gateway = ready(handler(own.clone(), "")).await;
    let declared = ready(handler(exchange(), "price: '0.5',")).await;
    let free = ready(handler(exchange(), "price: '0',")).await;
    let tool = || CallTarget::Tool("own".into());
    for (gateway, cost) in [(&gateway, 2_000_000), (&declared, 500_000), (&free, 0)] {
        let (spent, ended) = spend(gateway, tool(), "{}").await;
        ended.unwrap();
        assert_eq!(spent, cost);
    }
    publish("3").await;
    // The price applies as soon as the gateway knows it.
    tokio::time::timeout(Duration::from_secs(10), async {
        while spend(&gateway, tool(), "{}").await.0 != 3_000_000 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(spend(&declared, tool(), "{}").await.0, 500_000);
}

#[tokio::test]
async fn function_load_error_is_reported_to_operators_only() {
    let host = host().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cortexone_function.lua"), "broken").unwrap();
    let every = Duration::from_millis(10);
    let there = FolderExchange::new(host.clone(), folder.path().to_owned(), every);
    let unknown = FunctionExchange::new(host.clone(), "none".into(), VersionSelector::Latest);
    let path = folder.path().display();
    let expected: [(Arc<dyn MessageExchange>, String); 2] = [
        (
            Arc::new(there),
            format!("the function cannot be read: {path}: the function cannot be loaded: line 1"),
        ),
        (Arc::new(unknown), r#"there is no function "none""#.to_owned()),
    ];
    for (exchange, expected) in expected {
        let handler = handler(exchange, "");
        let mut catalog = handler.backend.catalog();
        let is_down =
            |phase: &BackendPhase| *phase == BackendPhase::Unavailable { reason: expected.clone().into() };
        let snapshot = catalog.wait_for(|catalog| is_down(&catalog.phase));
        let snapshot =
            tokio::time::timeout(Duration::from_secs(10), snapshot).await.unwrap().unwrap().clone();
        let gateway = gateway(Registry::assemble(&[(handler, snapshot)], &mut NameRegistry::default()));
        let (spent, ended) = spend(&gateway, CallTarget::Tool("own".into()), "{}").await;
        let refused = ended.unwrap_err();
        assert!(!refused.message().contains(&*path.to_string()), "{refused}");
        assert_eq!(spent, 0);
    }
}

#[tokio::test]
async fn key_quota_and_function_are_checked_in_order() {
    let gateway = KeyedGateway::start("").await;
    let project = json!({
        "kind": "function", "language": "lua", "files": [{"path": "cortexone_function.lua", "text": "a"}],
    });
    let admin = gateway.key_for("admin").await;
    let saved = gateway.short(&admin, "PUT /api/v1/functions/there/draft", &project.to_string(), "/id").await;
    assert_eq!(saved, r#"200 "there""#);
    let invoke = async |key: &str, path: &str| {
        gateway.short(key, &format!("POST /api/v1/functions/{path}/invoke"), r#"{"event":{}}"#, "").await
    };
    let paths = ["none/latest", "there/1.0.0", "there/newest", "none/newest"];
    let all = async |key: &str, expected: [&str; 4]| {
        for (path, expected) in paths.into_iter().zip(expected) {
            assert_eq!(invoke(key, path).await, expected, "{path}");
        }
    };
    let lookup_errors =
        ["404 function_not_found", "404 function_not_found", "400 bad_function", "404 function_not_found"];
    // The gateway checks the function and its version before the body.
    let unreadable = ["{", "[]", "{}", ""];
    let check_unreadable = async |key: &str, path: &str, expected: &str| {
        for body in unreadable {
            let line = format!("POST /api/v1/functions/{path}/invoke");
            assert_eq!(gateway.short(key, &line, body, "").await, expected, "{path} {body:?}");
        }
    };
    for path in ["none/latest", "none/zz!", "there/1.0.0"] {
        check_unreadable(&admin, path, "404 function_not_found").await;
    }
    let line = "POST /api/v1/functions/there/draft/invoke";
    assert_eq!(gateway.short(&admin, line, "{", "").await, "400 bad_request");
    all("ty_wrong", ["401 unauthenticated"; 4]).await;
    all(&gateway.key_for("rest").await, ["403 denied"; 4]).await;
    all(&admin, lookup_errors).await;
    all(&gateway.key_for("functions").await, lookup_errors).await;
    let scopes = r#""scopes":["functions","rest","tools:*"]"#;
    let call = "POST /api/v1/tools/search/call";
    for (limit, refusal) in [("calls", "402 quota_exhausted"), ("rate", "429 rate_limited")] {
        let per = if limit == "rate" { "1/day" } else { "1" };
        let key = gateway.key(&format!(r#"{{"name":"one",{scopes},"{limit}":"{per}"}}"#)).await;
        if limit == "calls" {
            // A call of an unknown function is free.
            all(&key, lookup_errors).await;
            all(&key, lookup_errors).await;
        }
        assert!(gateway.short(&key, call, "{}", "").await.starts_with("200"), "{limit}");
        all(&key, [refusal; 4]).await;
        assert_eq!(invoke(&key, "there/draft").await, refusal);
        for path in ["there/draft", "there/zz!", "none/latest"] {
            check_unreadable(&key, path, refusal).await;
        }
    }
}

#[tokio::test]
async fn publish_scope_is_limited_to_its_functions() {
    let gateway = KeyedGateway::start("").await;
    let project = json!({
        "kind": "function", "language": "lua", "files": [{"path": "cortexone_function.lua", "text": "a"}],
    })
    .to_string();
    let requests = |id: &str| {
        [
            (format!("PUT /api/v1/functions/{id}/draft"), project.as_str()),
            (format!("GET /api/v1/functions/{id}"), ""),
            (format!("GET /api/v1/functions/{id}/draft"), ""),
            (format!("GET /api/v1/functions/{id}/logs"), ""),
            (format!("POST /api/v1/functions/{id}/publish"), r#"{"bump":"patch"}"#),
            (format!("POST /api/v1/functions/{id}/9.9.9/test"), ""),
            (format!("POST /api/v1/functions/{id}/9.9.9/invoke"), r#"{"event":1}"#),
            (format!("DELETE /api/v1/functions/{id}/draft"), ""),
            (format!("DELETE /api/v1/functions/{id}"), ""),
        ]
    };
    let admin = gateway.key_for("admin").await;
    let all = async |scopes: &str, id: &str| {
        let key = gateway.key_for(scopes).await;
        let mut statuses = Vec::new();
        for (line, body) in requests(id) {
            // Each request needs the draft, which the previous one may have deleted.
            gateway.ask(&admin, &format!("PUT /api/v1/functions/{id}/draft"), &project).await;
            statuses.push(gateway.ask(&key, &line, body).await.head.status().to_string());
        }
        statuses.join(" ")
    };
    // Publishing fails because the function has no tests, and invoking it needs another scope.
    let own = "200 200 200 200 400 404 403 200 200";
    let none = "403 403 403 403 403 403 403 403 403";
    assert_eq!(all("publish:geo-*", "geo-coder").await, own);
    assert_eq!(all("publish:geo-* publish:weather", "weather").await, own);
    for (scopes, id) in [
        ("publish:geo-*", "weather"),
        ("publish:geo-*", "geo"),
        ("publish:weather", "weather2"),
        ("publish:x/*", "weather"),
        ("tools:* rest metrics memory:*", "weather"),
    ] {
        assert_eq!(all(scopes, id).await, none, "{scopes} {id}");
    }
    for id in ["geo-coder", "weather"] {
        gateway.ask(&admin, &format!("PUT /api/v1/functions/{id}/draft"), &project).await;
    }
    let list_functions = async |scopes: &str| {
        let key = gateway.key_for(scopes).await;
        let response = gateway.ask(&key, "GET /api/v1/functions", "").await;
        let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
        let ids =
            body["functions"].as_array().into_iter().flatten().map(|function| function["id"].to_string());
        format!("{} {}", response.head.status(), ids.collect::<Vec<_>>().join(" "))
    };
    assert!(list_functions("functions").await.contains("weather"));
    assert_eq!(list_functions("publish:geo-c*").await, r#"200 "geo-coder""#);
    assert_eq!(list_functions("publish:nothing").await, "200 ");
    assert_eq!(list_functions("rest").await, "403 ");
}

#[tokio::test]
async fn calls_that_fail_before_the_function_are_logged() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key(r#"{"name":"q","scopes":["functions","admin"],"cost":"1"}"#).await;
    let project = |price: &str, token: &str| {
        json!({
            "kind": "function", "language": "lua", "price": price, "environment": {"TOKEN": token},
            "files": [{"path": "cortexone_function.lua", "text": "a"}],
        })
    };
    let save = async |id: &str, project: Value| {
        let line = format!("PUT /api/v1/functions/{id}/draft");
        gateway.short(&key, &line, &project.to_string(), "/id").await
    };
    assert_eq!(save("dear", project("2", "a")).await, r#"200 "dear""#);
    assert_eq!(save("lent", project("0", "${SECRET_NAME}")).await, r#"200 "lent""#);
    let invoke = async |id: &str, version: &str| {
        let line = format!("POST /api/v1/functions/{id}/{version}/invoke");
        let response = gateway.ask(&key, &line, r#"{"event":{}}"#).await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        format!("{} {} {}", response.head.status(), body["code"], body["detail"])
    };
    for version in ["newest", "01", "1.2.3.4"] {
        let answer = invoke("dear", version).await;
        assert!(answer.starts_with(r#"400 "bad_function" "a version is"#), "{answer}");
    }
    assert_eq!(invoke("dear", "draft").await, r#"402 "quota_exhausted" "quota of 1 exhausted""#);
    assert_eq!(invoke("lent", "draft").await, r#"503 "unavailable" "the function cannot be loaded""#);
    let log_entry = async |id: &str| {
        let line = format!("GET /api/v1/functions/{id}/logs");
        loop {
            let response = gateway.ask(&key, &line, "").await;
            let body: Value = serde_json::from_str(&response.body).unwrap();
            if let Some(entry) = body["entries"].get(0) {
                return format!(
                    "{} {} {} {}",
                    entry["version"], entry["outcome"], entry["cost"], entry["error"]
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let dear = tokio::time::timeout(Duration::from_secs(10), log_entry("dear")).await.unwrap();
    assert_eq!(dear, r#""draft" "quota_exhausted" "0" "quota of 1 exhausted""#);
    let loan = tokio::time::timeout(Duration::from_secs(10), log_entry("lent")).await.unwrap();
    let why = "the function cannot be loaded: the variable TOKEN refers to ${SECRET_NAME}, which this host does not provide";
    assert_eq!(loan, format!(r#""draft" "unavailable" "0" "{why}""#));
}
