//! A completer takes a string or a request.

use toolyard_sdk::Server;

async fn languages(typed: u32) -> Vec<String> {
    vec![typed.to_string()]
}

fn main() {
    let _ = Server::new("test", "1.0.0").complete_prompt("review", "language", languages);
}
