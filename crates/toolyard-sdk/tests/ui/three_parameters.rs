//! Three parameters instead of a context and one struct.

use toolyard_sdk::{Context, Server};

async fn add(_ctx: Context, a: f64, b: f64) -> String {
    (a + b).to_string()
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("add", "Adds.", add);
}
