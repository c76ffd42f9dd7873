//! Prompts.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{
    Content, Context, ElicitRequest, InputRequired, PromptMessage, PromptReply, RegisterError, Server,
};

use crate::PIXEL;

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    server
        .prompt("test_simple_prompt", "One sentence.", async || "This is a simple prompt for testing.")?
        .prompt("test_prompt_with_arguments", "Repeats its arguments.", with_arguments)?
        .prompt("test_prompt_with_embedded_resource", "Embeds a resource.", with_resource)?
        .prompt("test_prompt_with_image", "Shows an image.", with_image)?
        .prompt("test_input_required_result_prompt", "Asks the user what it is about.", ask_first)?
        .complete_prompt("test_prompt_with_arguments", "arg1", words)
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

async fn with_arguments(args: Arguments) -> String {
    format!("Prompt with arguments: arg1='{}', arg2='{}'", args.arg1, args.arg2)
}

async fn words(typed: String) -> Vec<&'static str> {
    ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(&typed)).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    /// URI of the resource to embed
    resource_uri: String,
}

async fn with_resource(args: Embedded) -> Vec<PromptMessage> {
    let text = "Embedded resource content for testing.";
    vec![
        PromptMessage::user(Content::embedded_text(&args.resource_uri, "text/plain", text)),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

async fn with_image() -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(Content::image(PIXEL, "image/png")),
        PromptMessage::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Subject {
    context: String,
}

async fn ask_first(ctx: Context) -> PromptReply {
    let Some(answer) = ctx.elicit_answer::<Subject>("user_context") else {
        let form = ElicitRequest::form::<Subject>("What context should the prompt use?");
        return InputRequired::new().ask("user_context", form).into();
    };
    let subject = answer.accepted().map_or_else(|| "anything".to_owned(), |subject| subject.context);
    PromptReply::new().user(format!("Let us talk about {subject}."))
}
