//! The closure captures a value that is not `Clone`.

use std::sync::Mutex;

use toolyard_sdk::Server;

fn main() {
    let count = Mutex::new(0);
    let _ = Server::new("test", "1.0.0").tool("count", "Counts.", move || {
        *count.lock().unwrap() += 1;
    });
}
