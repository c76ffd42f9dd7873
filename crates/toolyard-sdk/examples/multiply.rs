//! A tool with an explicit definition, whose handler deserializes the arguments itself.
//!
//! ```sh
//! cargo run -p toolyard-sdk --example multiply                      # on standard input and output
//! cargo run -p toolyard-sdk --example multiply -- 127.0.0.1:8080    # on http://127.0.0.1:8080/mcp
//! ```

mod support;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Result, Server, Tool, ToolAnnotations, ToolCall, ToolFailure, schema_of};

#[derive(Deserialize, JsonSchema)]
struct MultiplyArgs {
    /// Multiplicand
    x: f64,
    /// Multiplier
    y: f64,
}

async fn multiply(call: ToolCall) -> Result<String, ToolFailure> {
    let args: MultiplyArgs = call.arguments()?;
    let product = args.x * args.y;
    if product.is_infinite() {
        // The model reads this and can correct the call.
        return Err(ToolFailure::new("the product is too large: use smaller numbers"));
    }
    Ok(format!("{product:.6}"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let tool = Tool {
        name: "multiply".into(),
        description: "Multiplies two numbers.".into(),
        input_schema: Some(schema_of::<MultiplyArgs>()),
        annotations: Some(ToolAnnotations::new().read_only(true).open_world(false)),
        ..Tool::default()
    };
    let server = Server::new("calculator", "1.0.0").register_tool(tool, multiply)?;
    support::serve(server).await
}
