//! The closure does not say what it takes.

use toolyard_sdk::Server;

fn main() {
    let _ = Server::new("test", "1.0.0").tool("echo", "Echoes.", |args| args.text);
}
