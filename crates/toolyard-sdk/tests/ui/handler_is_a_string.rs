//! The handler is a string instead of a function.

use toolyard_sdk::Server;

fn main() {
    let _ = Server::new("test", "1.0.0").tool("greet", "Greets.", "hello");
}
