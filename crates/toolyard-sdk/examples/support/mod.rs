//! How the examples are served.

use toolyard_sdk::{Error, Result, Server};

/// Serves on standard input and output; with an address as the program's first argument, over HTTP there, until
/// Ctrl-C. On port 0 the system chooses one, which the printed URL has.
pub(crate) async fn serve(server: Server) -> Result<()> {
    let Some(address) = std::env::args().nth(1) else { return server.serve_stdio().await };
    let running = server.listen(address).await?;
    announce(&running.url());
    tokio::signal::ctrl_c().await.map_err(Error::Start)?;
    running.stop().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "over HTTP, standard output does not belong to the protocol")]
fn announce(url: &str) {
    println!("listening on {url}");
}
