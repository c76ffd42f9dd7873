//! The type of the structured content does not implement `JsonSchema`.

use serde::Serialize;
use toolyard_sdk::{Json, Server};

#[derive(Serialize)]
struct Weather {
    celsius: f64,
}

async fn weather() -> Json<Weather> {
    Json(Weather { celsius: 21.5 })
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("weather", "Says how warm it is.", weather);
}
