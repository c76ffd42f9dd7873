//! Progress streams of which only the beginning is read.

use serde_json::json;
use xtask_client::{McpConnection, McpEra};

use super::AttackTarget;
use crate::hostile::server;

pub(in crate::hostile) async fn attempt(target: &AttackTarget) -> anyhow::Result<()> {
    let stream = target.connect_with_small_buffer().await?;
    let mut connection = McpConnection::open_on(stream, McpEra::Legacy, Some(&target.key)).await?;
    let _answer = super::ensure_accepted(connection.start_call(server::PROGRESS, json!({})).await?)?;
    target.completed();
    std::future::pending().await
}
