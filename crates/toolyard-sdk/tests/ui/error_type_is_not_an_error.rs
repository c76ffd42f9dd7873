//! The error type does not implement `Error`.

use toolyard_sdk::Server;

enum Failure {
    TooHot,
}

async fn weather() -> Result<String, Failure> {
    Err(Failure::TooHot)
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("weather", "Says how warm it is.", weather);
}
