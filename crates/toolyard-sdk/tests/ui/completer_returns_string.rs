//! A completer must return a list of values.

use toolyard_sdk::Server;

async fn language(typed: String) -> String {
    typed
}

fn main() {
    let _ = Server::new("test", "1.0.0").complete_prompt("review", "language", language);
}
