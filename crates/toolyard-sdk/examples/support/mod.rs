//! The transports of the examples.

#![expect(clippy::mod_module_files, reason = "`support.rs` would be an example")]

use toolyard_sdk::{Error, Result, Server};

/// Serves on standard input and output, or over HTTP on the address in the first argument of the program, until
/// Ctrl-C. With port 0 the system chooses a port; the printed URL contains it.
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
