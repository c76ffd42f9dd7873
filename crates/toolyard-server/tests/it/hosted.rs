//! Hosted functions: what their calls cost, and what is said and noted of those that do not come to them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::{Allowance, Grant, Pattern, Price};
use toolyard_core::gate::GateSize;
use toolyard_core::gateway::Observers;
use toolyard_core::{
    Call, Caller, Exchange, Gateway, Json, Outcome, Phase, Registry, Target, ToolError, names::Names,
};
use toolyard_functions::code::{Code, Context, Language};
use toolyard_functions::{
    Bump, FolderExchange, FunctionExchange, Host, HostOptions, Kind, Project, Ran, Run, RunError, TestCase,
    Wanted,
};
use toolyard_manifest::{FunctionHandler, Process};
use toolyard_process::{Processes, Spawner};
use toolyard_server::build::{Builder, Functions};
use toolyard_server::hosting::Doors;

use crate::door::{Yard, memory};

/// Answers `{statusCode, body}` with the source, unless that is `broken`: it cannot be loaded then.
struct Scripted;

fn is_broken(code: &Code) -> bool {
    code.files.iter().any(|(_, source)| source == "broken")
}

impl Run for Scripted {
    fn run<'a>(
        &'a self,
        code: &'a Arc<Code>,
        _: &'a Json,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Ran, RunError>> {
        Box::pin(async {
            if is_broken(code) {
                return Err(RunError::NotLoaded { message: "line 1".to_owned() });
            }
            let answer =
                Json::parse(r#"{"jsonrpc":"2.0","id":1,"result":{},"statusCode":200,"body":"said"}"#);
            Ok(Ran { answer: answer.unwrap(), log: String::new() })
        })
    }

    fn load<'a>(&'a self, code: &'a Arc<Code>) -> BoxFuture<'a, Result<(), RunError>> {
        let broken = Err(RunError::NotLoaded { message: "line 1".to_owned() });
        Box::pin(std::future::ready(if is_broken(code) { broken } else { Ok(()) }))
    }
}

/// What was taken and not given back, in millionths.
#[derive(Debug, Default)]
struct Spent(AtomicU64);

impl Allowance for Spent {
    fn take(&self, price: Price) -> BoxFuture<'_, Result<(), ToolError>> {
        self.0.fetch_add(price.0, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back(&self, price: Price) {
        self.0.fetch_sub(price.0, Ordering::SeqCst);
    }
}

async fn host() -> Host {
    Host::start(memory().await, Arc::new(Scripted), HostOptions::default())
}

fn project(kind: Kind, source: &str, price: &str) -> Project {
    let mut project = Project::of_source(kind, Language::Lua, source.to_owned());
    project.price = price.parse().unwrap();
    project.tests = vec![TestCase { name: "any".into(), event: Json::null(), expect: None }];
    project
}

/// What a call costs its caller, and how it ends.
async fn spend(gateway: &Gateway, target: Target, arguments: &str) -> (u64, Result<Outcome, ToolError>) {
    let spent = Arc::new(Spent::default());
    let everything: Pattern = "*".parse().unwrap();
    let grant = Grant {
        scope: [everything].into_iter().collect(),
        allowance: Some(spent.clone()),
        ..Grant::default()
    };
    let caller = Caller { grant: Some(Arc::new(grant)), ..Caller::default() };
    let call = Call { target, caller, ..Call::tool("", Json::parse(arguments.to_owned()).unwrap()) };
    let ended = gateway.invoke(call).await;
    (spent.0.load(Ordering::SeqCst), ended)
}

fn gateway(registry: Registry) -> Gateway {
    let size = GateSize { running: 10, waiting: 10 };
    let (_, registry) = watch::channel(Arc::new(registry));
    Gateway::new(registry, Gateway::layers(Observers::default(), size, None))
}

#[tokio::test]
async fn what_is_not_called_costs_nothing() {
    let host = host().await;
    host.save_draft("mcp", &project(Kind::Mcp, "fine", "5")).await.unwrap();
    host.save_draft("broken", &project(Kind::Function, "broken", "5")).await.unwrap();
    let size = GateSize { running: 10, waiting: 10 };
    let gateway = gateway(Registry::default()).with_functions(Arc::new(Doors::new(host.clone(), size)));
    let check = async |id: &str, event: &str, cost: u64| {
        let target = Target::Function(format!("{id}@draft").into());
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

/// Gives the exchange of a test to every handler.
struct Given(Mutex<Option<Arc<dyn Exchange>>>);

impl Functions for Given {
    fn exchange(&self, _: &FunctionHandler) -> Arc<dyn Exchange> {
        self.0.lock().unwrap().take().unwrap()
    }
}

/// A handler with one tool, which this exchange runs. `price` is what the manifest says.
fn handler(exchange: Arc<dyn Exchange>, price: &str) -> toolyard_core::registry::Handler {
    let text = format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: test}}\nspec:\n  handlers:\n  \
         - {{name: own, type: function, {price} functionConfig: {{id: own}}, \
         tool: {{name: own, description: Own, inputSchema: {{type: object}}}}}}\n"
    );
    let source = toolyard_manifest::Source { name: "test.yaml".into(), text };
    let manifest = toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"));
    let builder = Builder::new(Process::default(), Processes::new(Spawner::Direct, 1)).unwrap();
    builder.with_functions(Arc::new(Given(Mutex::new(Some(exchange))))).build(&manifest.handlers[0])
}

async fn ready(handler: toolyard_core::registry::Handler) -> Gateway {
    let mut catalog = handler.backend.catalog();
    let catalog = catalog.wait_for(|catalog| catalog.phase == Phase::Ready).await.unwrap().clone();
    gateway(Registry::assemble(&[(handler, catalog)], &mut Names::default()))
}

#[tokio::test]
async fn a_tool_costs_what_its_version_does_unless_the_manifest_says_it() {
    let host = host().await;
    let publish = async |price: &str| {
        host.save_draft("own", &project(Kind::Function, price, price)).await.unwrap();
        host.publish("own", Bump::Patch, None).await.unwrap();
    };
    publish("2").await;
    let exchange = || Arc::new(FunctionExchange::new(host.clone(), "own".into(), Wanted::Latest));
    let own = exchange();
    let gateway = ready(handler(own.clone(), "")).await;
    let declared = ready(handler(exchange(), "price: '0.5',")).await;
    let free = ready(handler(exchange(), "price: '0',")).await;
    let tool = || Target::Tool("own".into());
    for (gateway, cost) in [(&gateway, 2_000_000), (&declared, 500_000), (&free, 0)] {
        let (spent, ended) = spend(gateway, tool(), "{}").await;
        ended.unwrap();
        assert_eq!(spent, cost);
    }
    publish("3").await;
    // As soon as it is known.
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
async fn a_handler_whose_function_cannot_be_loaded_says_so_to_operators() {
    let host = host().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cortexone_function.lua"), "broken").unwrap();
    let every = Duration::from_millis(10);
    let there = FolderExchange::new(host.clone(), folder.path().to_owned(), every);
    let unknown = FunctionExchange::new(host.clone(), "none".into(), Wanted::Latest);
    let path = folder.path().display();
    let expected: [(Arc<dyn Exchange>, String); 2] = [
        (
            Arc::new(there),
            format!("the function cannot be read: {path}: the function cannot be loaded: line 1"),
        ),
        (Arc::new(unknown), r#"there is no function "none""#.to_owned()),
    ];
    for (exchange, expected) in expected {
        let handler = handler(exchange, "");
        let mut catalog = handler.backend.catalog();
        let is_down = |phase: &Phase| *phase == Phase::Unavailable { reason: expected.clone() };
        let found = catalog.wait_for(|catalog| is_down(&catalog.phase));
        let found = tokio::time::timeout(Duration::from_secs(10), found).await.unwrap().unwrap().clone();
        let gateway = gateway(Registry::assemble(&[(handler, found)], &mut Names::default()));
        let (spent, ended) = spend(&gateway, Target::Tool("own".into()), "{}").await;
        let refused = ended.unwrap_err();
        assert!(!refused.message().contains(&*path.to_string()), "{refused}");
        assert_eq!(spent, 0);
    }
}

#[tokio::test]
async fn calls_that_do_not_come_to_their_function_are_noted() {
    let yard = Yard::start("").await;
    let key = yard.key(r#"{"name":"q","scopes":["functions","admin"],"cost":"1"}"#).await;
    let project = |price: &str, token: &str| {
        json!({
            "kind": "function", "language": "lua", "price": price, "environment": {"TOKEN": token},
            "files": [{"path": "cortexone_function.lua", "text": "a"}],
        })
    };
    let save = async |id: &str, project: Value| {
        let line = format!("PUT /api/v1/functions/{id}/draft");
        yard.short(&key, &line, &project.to_string(), "/id").await
    };
    assert_eq!(save("dear", project("2", "a")).await, r#"200 "dear""#);
    assert_eq!(save("lent", project("0", "${SECRET_NAME}")).await, r#"200 "lent""#);
    let invoke = async |id: &str, version: &str| {
        let line = format!("POST /api/v1/functions/{id}/{version}/invoke");
        let response = yard.ask(&key, &line, r#"{"event":{}}"#).await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        format!("{} {} {}", response.head.status(), body["code"], body["detail"])
    };
    for version in ["newest", "01", "1.2.3.4"] {
        let said = invoke("dear", version).await;
        assert!(said.starts_with(r#"400 "bad_function" "a version is"#), "{said}");
    }
    assert_eq!(invoke("dear", "draft").await, r#"402 "quota_exhausted" "The quota of 1 is used up""#);
    assert_eq!(invoke("lent", "draft").await, r#"503 "unavailable" "the function cannot be loaded""#);
    let noted = async |id: &str| {
        let line = format!("GET /api/v1/functions/{id}/logs");
        loop {
            let response = yard.ask(&key, &line, "").await;
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
    let dear = tokio::time::timeout(Duration::from_secs(10), noted("dear")).await.unwrap();
    assert_eq!(dear, r#""draft" "quota_exhausted" "0" "The quota of 1 is used up""#);
    let lent = tokio::time::timeout(Duration::from_secs(10), noted("lent")).await.unwrap();
    let why = "the function cannot be loaded: the variable TOKEN of the function is to be ${SECRET_NAME}, which this host does not lend";
    assert_eq!(lent, format!(r#""draft" "unavailable" "0" "{why}""#));
}
