//! Connections of one client, each with an incomplete request, so that none of them is idle.

use anyhow::bail;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::sleep;

use super::{AttackTarget, RECONNECT_DELAY};
use crate::hostile::PROXY;

/// Address of the client. Its connections come through a proxy, because loopback addresses have no limit.
const CLIENT: &str = "198.51.100.7";

/// Announced length of the body, in bytes; none of them is sent.
const ANNOUNCED: usize = 16;

pub(in crate::hostile) async fn attempt(target: &AttackTarget) -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((PROXY, 0).into())?;
    let mut connection = socket.connect(target.gateway).await?;
    let client = format!("PROXY TCP4 {CLIENT} 198.51.100.1 40000 443\r\n");
    connection.write_all((client + &target.request_head(ANNOUNCED)).as_bytes()).await?;
    target.completed();
    let answered = connection.read_u8().await.is_ok();
    sleep(RECONNECT_DELAY).await;
    bail!("the connection was closed; response: {answered}")
}
