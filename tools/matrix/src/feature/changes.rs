//! Notifications of changes.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::calls::run_step;
use super::lists;
use crate::client::MatrixClient;
use crate::script::{FeatureScript, ToolStep};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A subscribed resource changes, and the client is notified.
pub(super) async fn subscribe(client: &mut MatrixClient, uri: &str, touch: &ToolStep) -> anyhow::Result<()> {
    let modern = client.kind.revision.is_modern();
    let stream = match modern {
        true => Some(listen(client, json!({"resourceSubscriptions": [uri]})).await?),
        false => {
            client.request("resources/subscribe", json!({"uri": uri})).await?;
            None
        }
    };
    run_step(client, touch, json!({})).await?;
    let notification = client
        .wait_for_notification("notifications/resources/updated", |params| params["uri"] == uri)
        .await?;
    match stream {
        Some(id) => end(client, id, &notification).await,
        None => client.request("resources/unsubscribe", json!({"uri": uri})).await.map(drop),
    }
}

/// A list grows; the client is notified, and finds the new entry.
pub(super) async fn list_changed(client: &mut MatrixClient, script: &FeatureScript) -> anyhow::Result<()> {
    let (list, new_entry) = (&script.list, script.new_entry.replace("NAME", &client.own_name));
    let modern = client.kind.revision.is_modern();
    let stream = match modern {
        true => Some(listen(client, json!({list.filter: true})).await?),
        false => None,
    };
    client.clear_received();
    run_step(client, &script.grow, json!({})).await?;
    let changed = format!("notifications/{}/list_changed", list.kind);
    loop {
        let notification = client
            .wait_for_notification(&changed, |_| true)
            .await
            .context("no notification of the change")?;
        // The change of another client may be notified first.
        if lists::list_names(client, list).await?.contains(&new_entry) {
            return match stream {
                Some(id) => end(client, id, &notification).await,
                None => Ok(()),
            };
        }
    }
}

/// Opens a subscription stream, and checks that everything requested is acknowledged.
async fn listen(client: &mut MatrixClient, requested: Value) -> anyhow::Result<u64> {
    let id = client.start_request("subscriptions/listen", json!({"notifications": requested})).await?;
    let acknowledged =
        client.wait_for_notification(ACKNOWLEDGED, |params| params["_meta"][SUBSCRIPTION] == id).await?;
    ensure!(acknowledged["notifications"] == requested, "requested {requested}, got {acknowledged}");
    Ok(id)
}

/// Closes the stream. Its notifications have its ID.
async fn end(client: &mut MatrixClient, id: u64, notification: &Value) -> anyhow::Result<()> {
    ensure!(notification["_meta"][SUBSCRIPTION] == id, "missing ID of the stream: {notification}");
    client.cancel(id).await
}
