use toolyard_store::{DatabaseLocation, ReopeningStore, StoreOptions};

use super::*;

/// Handlers `a`, `b` and so on of one registry.
fn handlers(names: &str) -> Vec<manifest::HandlerConfig> {
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
    let source = manifest::ManifestSource { name: "test.yaml".to_owned(), text };
    manifest::parse_with(&[source], &|_| None).unwrap().handlers
}

/// Parses names as `handler:own=name`.
fn given_names(text: &str) -> NameRegistry {
    let assigned = text.split_whitespace().map(|assigned| {
        let (handler, assigned) = assigned.split_once(':').unwrap();
        let (own, name) = assigned.split_once('=').unwrap();
        let (handler, own, name) = (handler.into(), own.into(), name.into());
        AssignedName {
            named: NamedKind::Tool,
            handler,
            own,
            name,
            asked: None,
            prefix: PrefixPolicy::OnClash,
        }
    });
    NameRegistry::restored(assigned, |_| true)
}

fn name_list(names: &NameRegistry) -> String {
    let name_list =
        names.assigned_names().map(|given| format!("{}:{}={}", given.handler, given.own, given.name));
    let mut name_list: Vec<_> = name_list.collect();
    name_list.sort();
    name_list.join(" ")
}

/// Returns the names that a gateway with these handlers recalls.
async fn recalled_names(store: &Arc<dyn Store>, handler_names: &str) -> String {
    name_list(&HandlerRecordStore::recall(store.clone(), &handlers(handler_names)).await.1)
}

/// Saves several versions of the names, one after the other.
async fn save(record_store: &mut HandlerRecordStore, handler_names: &str, names: &[&str]) {
    for names in names {
        record_store.save(&name_records(&given_names(names), handlers(handler_names).iter())).await.unwrap();
    }
}

async fn in_memory() -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

#[tokio::test]
async fn records_of_other_gateways_stay() {
    let store = in_memory().await;
    let (mut one, _) = HandlerRecordStore::recall(store.clone(), &handlers("a b")).await;
    save(&mut one, "a b", &["a:x=x", "a:x=x b:x=b_x"]).await;
    let (mut other, _) = HandlerRecordStore::recall(store.clone(), &handlers("b c")).await;
    save(&mut other, "b c", &["b:x=b_x c:x=x"]).await;
    assert_eq!(recalled_names(&store, "a b").await, "a:x=x b:x=b_x");
    // The other gateway removes a handler that both have.
    save(&mut other, "c", &["c:x=x"]).await;
    assert_eq!(recalled_names(&store, "a b").await, "a:x=x");
    // The first gateway writes its change only.
    save(&mut one, "a b", &["a:x=y b:x=b_x"]).await;
    assert_eq!(recalled_names(&store, "a b").await, "a:x=y");
    assert_eq!(recalled_names(&store, "c").await, "c:x=x");
    save(&mut one, "a b", &["b:x=b_x"]).await;
    assert_eq!(recalled_names(&store, "a b").await, "", "a handler without names has no record");
}

#[tokio::test]
async fn unread_records_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in/store.db");
    let options = StoreOptions::at(DatabaseLocation::File(path.clone()));
    let store = toolyard_store::open(&options).await.unwrap();
    let (mut record_store, _) = HandlerRecordStore::recall(store.clone(), &handlers("a b")).await;
    save(&mut record_store, "a b", &["a:x=a_x b:x=x"]).await;
    drop((record_store, store));

    let away = folder.path().join("away");
    std::fs::rename(folder.path().join("in"), &away).unwrap();
    std::fs::write(folder.path().join("in"), "").unwrap();
    let reopening = Arc::new(ReopeningStore::new(options));
    let (mut record_store, names) = HandlerRecordStore::recall(reopening.clone(), &handlers("a b c")).await;
    assert_eq!(name_list(&names), "");
    let records = name_records(&given_names("a:x=x c:x=c_x"), handlers("a b c").iter());
    assert!(record_store.save(&records).await.is_err());

    std::fs::remove_file(folder.path().join("in")).unwrap();
    std::fs::rename(away, folder.path().join("in")).unwrap();
    let store: Arc<dyn Store> = reopening.open().await.unwrap();
    save(&mut record_store, "a b c", &["a:x=x c:x=c_x", "a:x=x b:x=b_x c:x=c_x"]).await;
    assert_eq!(
        recalled_names(&store, "a b c").await,
        "a:x=a_x b:x=x c:x=c_x",
        "the earlier ones stay, and new ones come"
    );
    save(&mut record_store, "a b c", &["a:x=z b:x=b_x c:x=c_x"]).await;
    assert_eq!(recalled_names(&store, "a b c").await, "a:x=z b:x=x c:x=c_x", "a change is written");
}
