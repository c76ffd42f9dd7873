//! Multi-round-trip tools: they return questions and are called again with the answers. The server keeps no state
//! between the rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{
    Context, ElicitRequest, ElicitResult, InputRequired, RegisterError, RootsRequest, SampleRequest, Server,
    ToolFailure, ToolReply,
};

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    server
        .tool("test_input_required_result_elicitation", "Greets the user by name.", greet)?
        .tool("test_streaming_elicitation", "Greets the user by name.", greet)?
        .tool("test_input_required_result_sampling", "Asks the client's model for a capital.", capital)?
        .tool("test_input_required_result_list_roots", "Lists the client's folders.", roots)?
        .tool("test_input_required_result_request_state", "Keeps a state between two rounds.", confirm)?
        .tool("test_input_required_result_tampered_state", "Refuses a state that was changed.", confirm)?
        .tool(
            "test_input_required_result_multi_round",
            "Asks two questions, one after the other.",
            two_steps,
        )?
        .tool("test_input_required_result_multiple_inputs", "Asks three questions at once.", three_at_once)?
        .tool(
            "test_input_required_result_capabilities",
            "Asks the questions that the client supports.",
            ask_supported,
        )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    name: String,
}

impl Name {
    fn form() -> ElicitRequest {
        ElicitRequest::form::<Self>("What is your name?")
    }

    /// The question with the key `user_name`.
    pub(crate) fn ask() -> InputRequired {
        InputRequired::new().ask("user_name", Self::form())
    }

    /// The name in the answer, if there is one.
    pub(crate) fn from_answer(ctx: &Context) -> Option<String> {
        ctx.elicit_answer::<Self>("user_name").map(Self::or_friend)
    }

    /// The entered name, or "friend" if the user declined.
    fn or_friend(answer: ElicitResult<Self>) -> String {
        answer.accepted().map_or_else(|| "friend".to_owned(), |user| user.name)
    }
}

async fn greet(ctx: Context) -> ToolReply {
    match Name::from_answer(&ctx) {
        Some(name) => ToolReply::new().text(format!("Hello, {name}!")),
        None => Name::ask().into(),
    }
}

async fn capital(ctx: Context) -> ToolReply {
    match ctx.sample_answer("capital_question") {
        Some(answer) => ToolReply::new().text(answer.text()),
        None => {
            let question = sampling("What is the capital of France?");
            InputRequired::new().ask("capital_question", question).into()
        }
    }
}

fn sampling(question: &str) -> SampleRequest {
    SampleRequest::new().user(question).max_tokens(100)
}

async fn roots(ctx: Context) -> ToolReply {
    match ctx.roots_answer("client_roots") {
        Some(roots) => roots.into_iter().fold(ToolReply::new(), |reply, root| reply.text(root.uri)),
        None => InputRequired::new().ask("client_roots", RootsRequest).into(),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

/// State of a call that has asked its client.
#[derive(Serialize, Deserialize)]
struct QuestionSent;

/// `ctx.state()` refuses a state that was made for another call.
async fn confirm(ctx: Context) -> Result<ToolReply, ToolFailure> {
    let (Some(QuestionSent), Some(answer)) = (ctx.state()?, ctx.elicit_answer::<Confirmation>("confirm"))
    else {
        let form = ElicitRequest::form::<Confirmation>("Please confirm");
        return Ok(InputRequired::new().ask("confirm", form).state(&QuestionSent)?.into());
    };
    let ok = answer.accepted().is_some_and(|confirmation| confirmation.ok);
    Ok(ToolReply::new().text(format!("state-ok: {ok}")))
}

/// The answers collected so far.
#[derive(Default, Serialize, Deserialize)]
struct CollectedAnswers {
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

async fn two_steps(ctx: Context) -> Result<ToolReply, ToolFailure> {
    let mut answers: CollectedAnswers = ctx.state()?.unwrap_or_default();
    answers.name = answers.name.or_else(|| ctx.elicit_answer("step1").map(Name::or_friend));
    let Some(name) = &answers.name else {
        let form = ElicitRequest::form::<Name>("Step 1: What is your name?");
        return Ok(InputRequired::new().ask("step1", form).state(&answers)?.into());
    };
    let Some(answer) = ctx.elicit_answer::<Color>("step2") else {
        let form = ElicitRequest::form::<Color>("Step 2: What is your favorite color?");
        return Ok(InputRequired::new().ask("step2", form).state(&answers)?.into());
    };
    let color = answer.accepted().map_or_else(|| "no color".to_owned(), |favorite| favorite.color);
    Ok(ToolReply::new().text(format!("{name} likes {color}.")))
}

async fn three_at_once(ctx: Context) -> Result<ToolReply, ToolFailure> {
    let answers = (Name::from_answer(&ctx), ctx.sample_answer("greeting"), ctx.roots_answer("client_roots"));
    let (Some(QuestionSent), (Some(name), Some(greeting), Some(roots))) = (ctx.state()?, answers) else {
        let asks =
            Name::ask().ask("greeting", sampling("Generate a greeting")).ask("client_roots", RootsRequest);
        return Ok(asks.state(&QuestionSent)?.into());
    };
    let (greeting, folders) = (greeting.text(), roots.len());
    Ok(ToolReply::new().text(format!("{greeting} {name}, you share {folders} folders.")))
}

async fn ask_supported(ctx: Context) -> ToolReply {
    let greeting = ctx.sample_answer("greeting").map(|greeting| greeting.text());
    match Name::from_answer(&ctx).or(greeting) {
        Some(answer) => ToolReply::new().text(format!("You answered: {answer}")),
        None => InputRequired::new()
            .ask_if_supported("user_name", Name::form())
            .ask_if_supported("greeting", sampling("Generate a greeting"))
            .into(),
    }
}
