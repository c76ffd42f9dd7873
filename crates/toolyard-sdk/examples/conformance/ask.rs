//! Tools that ask their client while they run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_sdk::{Context, ElicitRequest, ElicitResult, RegisterError, SampleRequest, Server, ToolFailure};

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    server
        .tool("test_sampling", "Passes a prompt to the client's model.", sample)?
        .tool("test_missing_capability", "Does nothing without the client's model.", needs_model)?
        .tool("test_elicitation", "Asks the user for a name and an email address.", elicit)?
        .tool("test_elicitation_sep1034_defaults", "Asks with defaults.", elicit_defaults)?
        .tool("test_elicitation_sep1330_enums", "Asks with choices.", elicit_choices)
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// The prompt for the model
    prompt: String,
}

async fn sample(ctx: Context, args: Prompt) -> Result<String, ToolFailure> {
    let answer = ctx.sample(SampleRequest::new().user(args.prompt).max_tokens(100)).await?;
    Ok(format!("LLM response: {}", answer.text()))
}

/// The question mark turns a refusal into an error that names what the client lacks.
async fn needs_model(ctx: Context) -> Result<String, ToolFailure> {
    let answer = ctx.sample(SampleRequest::new().user("Say hello.").max_tokens(100)).await?;
    Ok(answer.text())
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// The message to the user
    message: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

async fn elicit(ctx: Context, args: Message) -> Result<String, ToolFailure> {
    let answer = ctx.elicit::<User>(args.message).await?;
    Ok(format!("User response: {}", describe_answer(answer)?))
}

/// A form with a field of each type and a default for each.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    name: String,
    age: i64,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Profile {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

async fn elicit_defaults(ctx: Context) -> Result<String, ToolFailure> {
    let answer = ctx.elicit::<Profile>("Is this right?").await?;
    Ok(format!("Elicitation completed: {}", describe_answer(answer)?))
}

/// EnumChoices in all the ways in which a form can write them. `enumNames` is out of use, so that no type comes to it.
async fn elicit_choices(ctx: Context) -> Result<String, ToolFailure> {
    let titled = json!([
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]);
    let form = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    });
    let answer: ElicitResult<Value> =
        ctx.ask(ElicitRequest::form_with_schema("Choose one or more.", form)).await?;
    Ok(format!("Elicitation completed: {}", describe_answer(answer)?))
}

/// The action of the user and the entered values.
fn describe_answer(answer: ElicitResult<impl Serialize>) -> serde_json::Result<String> {
    let action = answer.action();
    Ok(format!("action={action}, content={}", serde_json::to_string(&answer.accepted())?))
}
