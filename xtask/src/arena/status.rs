//! What the gateway says of the faulty handler.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, body::Bytes};
use hyper_util::rt::TokioIo;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tokio::net::TcpStream;

use super::peer::note;
use super::yard::FAULTY;
use crate::process::pid_of;

/// The pause between two deaths of the same server.
const LIFE: Duration = Duration::from_millis(500);

/// The pause between two looks at a status.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until the handler is ready.
pub(super) async fn await_ready(gateway: SocketAddr) -> anyhow::Result<()> {
    while of_faulty(gateway).await?["phase"] != "Ready" {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Kills the handler's process again and again, and notes each time.
pub(super) async fn kill_often(gateway: SocketAddr, switch: PathBuf) -> anyhow::Result<()> {
    loop {
        let handler = of_faulty(gateway).await?;
        let number = handler["processes"][0]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        // There may be none at the moment.
        if number.and_then(pid_of).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()) {
            note(&switch)?;
        }
        tokio::time::sleep(LIFE).await;
    }
}

async fn of_faulty(gateway: SocketAddr) -> anyhow::Result<Value> {
    let stream = TcpStream::connect(gateway).await?;
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let request = Request::get("/api/v1/status").header(HOST, gateway.to_string());
    let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let status: Value = serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?;
    let handlers = status["handlers"].as_array().context("a status without handlers")?;
    let faulty = handlers.iter().find(|handler| handler["name"] == FAULTY);
    faulty.cloned().context("the status does not know the faulty handler")
}
