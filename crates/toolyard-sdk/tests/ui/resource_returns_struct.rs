//! A resource handler must return text or bytes.

use toolyard_sdk::{Resource, Server};

struct Page;

async fn page() -> Result<Page, std::io::Error> {
    Ok(Page)
}

fn main() {
    let _ = Server::new("test", "1.0.0").resource(Resource::new("file:///a", "a"), page);
}
