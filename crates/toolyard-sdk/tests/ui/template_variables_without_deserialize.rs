//! The variables of a template do not implement `Deserialize`.

use toolyard_sdk::{ResourceTemplate, Server};

struct Page {
    number: u32,
}

async fn page(page: Page) -> String {
    page.number.to_string()
}

fn main() {
    let pages = ResourceTemplate::new("page:///{number}", "pages");
    let _ = Server::new("test", "1.0.0").resource_template(pages, page);
}
