//! What clients are told of changes.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::calls::perform;
use super::lists;
use crate::matrix::client::Client;
use crate::matrix::script::{Script, Step};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A resource that a client follows changes, and the client is told.
pub(super) async fn subscribe(client: &mut Client, uri: &str, touch: &Step) -> anyhow::Result<()> {
    let modern = client.kind.revision.is_modern();
    let stream = match modern {
        true => Some(listen(client, json!({"resourceSubscriptions": [uri]})).await?),
        false => {
            client.request("resources/subscribe", json!({"uri": uri})).await?;
            None
        }
    };
    perform(client, touch, json!({})).await?;
    let told = client.notice("notifications/resources/updated", |params| params["uri"] == uri).await?;
    match stream {
        Some(id) => end(client, id, &told).await,
        None => client.request("resources/unsubscribe", json!({"uri": uri})).await.map(drop),
    }
}

/// A list gets longer, the client is told, and finds what is new.
pub(super) async fn list_changed(client: &mut Client, script: &Script) -> anyhow::Result<()> {
    let (list, grown) = (&script.list, script.grown.replace("NAME", &client.own_name));
    let modern = client.kind.revision.is_modern();
    let stream = match modern {
        true => Some(listen(client, json!({list.filter: true})).await?),
        false => None,
    };
    client.forget();
    perform(client, &script.grow, json!({})).await?;
    let changed = format!("notifications/{}/list_changed", list.kind);
    loop {
        let told =
            client.notice(&changed, |_| true).await.context("the list has changed, and nobody was told")?;
        // Another client's doing may be told first.
        if lists::all(client, list).await?.contains(&grown) {
            return match stream {
                Some(id) => end(client, id, &told).await,
                None => Ok(()),
            };
        }
    }
}

/// Opens a stream of changes, which is acknowledged with all that was asked for.
async fn listen(client: &mut Client, wanted: Value) -> anyhow::Result<u64> {
    let id = client.begin("subscriptions/listen", json!({"notifications": wanted})).await?;
    let acknowledged = client.notice(ACKNOWLEDGED, |params| params["_meta"][SUBSCRIPTION] == id).await?;
    ensure!(acknowledged["notifications"] == wanted, "wanted {wanted} and got {acknowledged}");
    Ok(id)
}

/// Ends it. What was told on it has its id.
async fn end(client: &mut Client, id: u64, told: &Value) -> anyhow::Result<()> {
    ensure!(told["_meta"][SUBSCRIPTION] == id, "the id of the stream is missing: {told}");
    client.cancel(id).await
}
