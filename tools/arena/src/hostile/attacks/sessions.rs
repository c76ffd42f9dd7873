//! Sessions that are opened and abandoned.

use xtask_client::{McpConnection, McpEra};

use super::AttackTarget;

pub(in crate::hostile) async fn attempt(target: &AttackTarget) -> anyhow::Result<()> {
    for _ in 0..100 {
        McpConnection::open_with_key(target.gateway, McpEra::Legacy, Some(&target.key)).await?;
        target.completed();
    }
    Ok(())
}
