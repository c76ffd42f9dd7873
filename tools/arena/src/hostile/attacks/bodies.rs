//! Request bodies that lack their last byte.

use anyhow::bail;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::AttackTarget;
use crate::hostile::REQUEST_BODY_BYTES;

const CHUNK: &[u8] = &[b' '; 64 << 10];

pub(in crate::hostile) async fn attempt(target: &AttackTarget) -> anyhow::Result<()> {
    let mut connection = TcpStream::connect(target.gateway).await?;
    connection.write_all(target.request_head(REQUEST_BODY_BYTES).as_bytes()).await?;
    let (mut answer, mut request) = connection.split();
    let send = async {
        let mut remaining = REQUEST_BODY_BYTES - 1;
        while remaining > 0 {
            remaining -= request.write(&CHUNK[..CHUNK.len().min(remaining)]).await?;
        }
        target.completed();
        std::future::pending::<anyhow::Result<()>>().await
    };
    tokio::select! {
        sent = send => sent,
        _ = answer.read_u8() => bail!("response before the end of the body"),
    }
}
