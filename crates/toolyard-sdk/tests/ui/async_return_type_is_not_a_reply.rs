//! The output of the future is not a reply.

use toolyard_sdk::Server;

struct Weather {
    celsius: f64,
}

async fn weather() -> Weather {
    Weather { celsius: 21.5 }
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("weather", "Says how warm it is.", weather);
}
