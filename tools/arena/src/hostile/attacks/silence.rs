//! Connections on which nothing is sent.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{AttackTarget, RECONNECT_DELAY};

pub(in crate::hostile) async fn attempt(target: &AttackTarget) -> anyhow::Result<()> {
    let mut connection = TcpStream::connect(target.gateway).await?;
    target.completed();
    let read = connection.read(&mut [0]).await;
    sleep(RECONNECT_DELAY).await;
    read?;
    Ok(())
}
