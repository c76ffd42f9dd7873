//! The future holds a value that is not `Send` across an await.

use std::rc::Rc;

use toolyard_sdk::Server;

async fn greet() -> String {
    let greeting = Rc::new("hello".to_owned());
    tokio::task::yield_now().await;
    greeting.to_string()
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("greet", "Greets.", greet);
}
