//! Two arguments instead of one struct.

use toolyard_sdk::Server;

async fn add(a: f64, b: f64) -> String {
    (a + b).to_string()
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("add", "Adds.", add);
}
