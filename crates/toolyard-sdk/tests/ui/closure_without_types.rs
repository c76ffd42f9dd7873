//! The closure does not name the type of its parameter.

use toolyard_sdk::Server;

fn main() {
    let _ = Server::new("test", "1.0.0").tool("echo", "Echoes.", |args| args.text);
}
