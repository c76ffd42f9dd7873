//! A prompt handler must return messages.

use toolyard_sdk::Server;

async fn count() -> u32 {
    3
}

fn main() {
    let _ = Server::new("test", "1.0.0").prompt("count", "Counts.", count);
}
