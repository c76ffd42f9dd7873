//! The closure captures a value that is not `Send`.

use std::rc::Rc;

use toolyard_sdk::Server;

fn main() {
    let greeting = Rc::new("hello".to_owned());
    let _ = Server::new("test", "1.0.0").tool("greet", "Greets.", move || greeting.to_string());
}
