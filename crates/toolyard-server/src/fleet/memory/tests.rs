use toolyard_store::{Location, Reopening, StoreOptions};

use super::*;

/// Handlers `a`, `b` and so on of one registry.
fn handlers(names: &str) -> Vec<manifest::Handler> {
    let handler = |name: &str| {
        format!(
            "{{name: {name}, type: mcp, mcpConfig: {{transport: streamable-http, endpoint: 'http://127.0.0.1:1/mcp'}}}}"
        )
    };
    let handlers: Vec<_> = names.split_whitespace().map(handler).collect();
    let text = format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: r}}\nspec: {{handlers: [{}]}}",
        handlers.join(", ")
    );
    let source = manifest::Source { name: "test.yaml".to_owned(), text };
    manifest::parse_with(&[source], &|_| None).unwrap().handlers
}

/// Names as `handler:own=name`.
fn given_names(text: &str) -> Names {
    let given = text.split_whitespace().map(|given| {
        let (handler, given) = given.split_once(':').unwrap();
        let (own, name) = given.split_once('=').unwrap();
        let (handler, own, name) = (handler.into(), own.into(), name.into());
        Given { named: Named::Tool, handler, own, name, asked: None, prefix: Prefix::OnClash }
    });
    Names::restored(given, |_| true)
}

fn shown(names: &Names) -> String {
    let shown = names.given().map(|given| format!("{}:{}={}", given.handler, given.own, given.name));
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    shown.join(" ")
}

/// What a gateway with these handlers remembers.
async fn remembered(store: &Arc<dyn Store>, there: &str) -> String {
    shown(&Memory::recall(store.clone(), &handlers(there)).await.1)
}

/// A gateway has these handlers, and their names are one after the other what stands behind.
async fn settle(memory: &mut Memory, there: &str, names: &[&str]) {
    for names in names {
        memory.settle(&written(&given_names(names), handlers(there).iter())).await.unwrap();
    }
}

async fn in_memory() -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(Location::Memory)).await.unwrap()
}

#[tokio::test]
async fn handlers_of_others_are_let_alone() {
    let store = in_memory().await;
    let (mut one, _) = Memory::recall(store.clone(), &handlers("a b")).await;
    settle(&mut one, "a b", &["a:x=x", "a:x=x b:x=b_x"]).await;
    let (mut other, _) = Memory::recall(store.clone(), &handlers("b c")).await;
    settle(&mut other, "b c", &["b:x=b_x c:x=x"]).await;
    assert_eq!(remembered(&store, "a b").await, "a:x=x b:x=b_x");
    // An edit of the other one removes one that both have.
    settle(&mut other, "c", &["c:x=x"]).await;
    assert_eq!(remembered(&store, "a b").await, "a:x=x");
    // The first one writes what has changed there, and nothing else.
    settle(&mut one, "a b", &["a:x=y b:x=b_x"]).await;
    assert_eq!(remembered(&store, "a b").await, "a:x=y");
    assert_eq!(remembered(&store, "c").await, "c:x=x");
    settle(&mut one, "a b", &["b:x=b_x"]).await;
    assert_eq!(remembered(&store, "a b").await, "", "a handler without names has no record");
}

#[tokio::test]
async fn what_could_not_be_read_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in/store.db");
    let options = StoreOptions::at(Location::File(path.clone()));
    let store = toolyard_store::open(&options).await.unwrap();
    let (mut memory, _) = Memory::recall(store.clone(), &handlers("a b")).await;
    settle(&mut memory, "a b", &["a:x=a_x b:x=x"]).await;
    drop((memory, store));

    let away = folder.path().join("away");
    std::fs::rename(folder.path().join("in"), &away).unwrap();
    std::fs::write(folder.path().join("in"), "").unwrap();
    let reopening = Arc::new(Reopening::new(options));
    let (mut memory, names) = Memory::recall(reopening.clone(), &handlers("a b c")).await;
    assert_eq!(shown(&names), "");
    let records = written(&given_names("a:x=x c:x=c_x"), handlers("a b c").iter());
    assert!(memory.settle(&records).await.is_err());

    std::fs::remove_file(folder.path().join("in")).unwrap();
    std::fs::rename(away, folder.path().join("in")).unwrap();
    let store: Arc<dyn Store> = reopening.open().await.unwrap();
    settle(&mut memory, "a b c", &["a:x=x c:x=c_x", "a:x=x b:x=b_x c:x=c_x"]).await;
    assert_eq!(
        remembered(&store, "a b c").await,
        "a:x=a_x b:x=x c:x=c_x",
        "the earlier ones stay, and new ones come"
    );
    settle(&mut memory, "a b c", &["a:x=z b:x=b_x c:x=c_x"]).await;
    assert_eq!(remembered(&store, "a b c").await, "a:x=z b:x=x c:x=c_x", "a change is written");
}
