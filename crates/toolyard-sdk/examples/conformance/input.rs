//! Tools that go round by round: they end with questions, and are called again with the answers. Nothing is kept here
//! meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{
    Context, Elicit, Elicited, InputRequired, RegisterError, Reply, RootsRequest, SampleRequest, Server,
    ToolFailure,
};

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    server
        .tool("test_input_required_result_elicitation", "Greets the user by name.", greet)?
        .tool("test_streaming_elicitation", "Greets the user by name.", greet)?
        .tool("test_input_required_result_sampling", "Asks the client's model for a capital.", capital)?
        .tool("test_input_required_result_list_roots", "Lists the client's folders.", roots)?
        .tool("test_input_required_result_request_state", "Remembers that it has asked.", confirm)?
        .tool("test_input_required_result_tampered_state", "Refuses what it does not remember.", confirm)?
        .tool("test_input_required_result_multi_round", "Asks two things, one after the other.", two_steps)?
        .tool("test_input_required_result_multiple_inputs", "Asks three things at once.", three_at_once)?
        .tool("test_input_required_result_capabilities", "Asks what it can.", ask_what_it_can)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    name: String,
}

impl Name {
    fn form() -> Elicit {
        Elicit::form::<Self>("What is your name?")
    }

    /// The question, under the key `user_name`.
    pub(crate) fn ask() -> InputRequired {
        InputRequired::new().ask("user_name", Self::form())
    }

    /// The answer to it.
    pub(crate) fn answered(ctx: &Context) -> Option<String> {
        ctx.elicited::<Self>("user_name").map(Self::or_friend)
    }

    /// Nobody has to say their name.
    fn or_friend(answer: Elicited<Self>) -> String {
        answer.accepted().map_or_else(|| "friend".to_owned(), |user| user.name)
    }
}

async fn greet(ctx: Context) -> Reply {
    match Name::answered(&ctx) {
        Some(name) => Reply::new().text(format!("Hello, {name}!")),
        None => Name::ask().into(),
    }
}

async fn capital(ctx: Context) -> Reply {
    match ctx.sampled("capital_question") {
        Some(answer) => Reply::new().text(answer.text()),
        None => {
            let question = sampling("What is the capital of France?");
            InputRequired::new().ask("capital_question", question).into()
        }
    }
}

fn sampling(question: &str) -> SampleRequest {
    SampleRequest::new().user(question).max_tokens(100)
}

async fn roots(ctx: Context) -> Reply {
    match ctx.rooted("client_roots") {
        Some(roots) => roots.into_iter().fold(Reply::new(), |reply, root| reply.text(root.uri)),
        None => InputRequired::new().ask("client_roots", RootsRequest).into(),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

/// What a call remembers while its client is asked: that it has asked.
#[derive(Serialize, Deserialize)]
struct Asked;

/// A state that was not made for this call does not get past `ctx.state()`.
async fn confirm(ctx: Context) -> Result<Reply, ToolFailure> {
    let (Some(Asked), Some(answer)) = (ctx.state()?, ctx.elicited::<Confirmation>("confirm")) else {
        let form = Elicit::form::<Confirmation>("Please confirm");
        return Ok(InputRequired::new().ask("confirm", form).state(&Asked)?.into());
    };
    let ok = answer.accepted().is_some_and(|confirmation| confirmation.ok);
    Ok(Reply::new().text(format!("state-ok: {ok}")))
}

/// What is known after each round.
#[derive(Default, Serialize, Deserialize)]
struct Known {
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

async fn two_steps(ctx: Context) -> Result<Reply, ToolFailure> {
    let mut known: Known = ctx.state()?.unwrap_or_default();
    known.name = known.name.or_else(|| ctx.elicited("step1").map(Name::or_friend));
    let Some(name) = &known.name else {
        let form = Elicit::form::<Name>("Step 1: What is your name?");
        return Ok(InputRequired::new().ask("step1", form).state(&known)?.into());
    };
    let Some(answer) = ctx.elicited::<Color>("step2") else {
        let form = Elicit::form::<Color>("Step 2: What is your favorite color?");
        return Ok(InputRequired::new().ask("step2", form).state(&known)?.into());
    };
    let color = answer.accepted().map_or_else(|| "no color".to_owned(), |favorite| favorite.color);
    Ok(Reply::new().text(format!("{name} likes {color}.")))
}

async fn three_at_once(ctx: Context) -> Result<Reply, ToolFailure> {
    let answers = (Name::answered(&ctx), ctx.sampled("greeting"), ctx.rooted("client_roots"));
    let (Some(Asked), (Some(name), Some(greeting), Some(roots))) = (ctx.state()?, answers) else {
        let asks =
            Name::ask().ask("greeting", sampling("Generate a greeting")).ask("client_roots", RootsRequest);
        return Ok(asks.state(&Asked)?.into());
    };
    let (greeting, folders) = (greeting.text(), roots.len());
    Ok(Reply::new().text(format!("{greeting} {name}, you share {folders} folders.")))
}

async fn ask_what_it_can(ctx: Context) -> Reply {
    let greeting = ctx.sampled("greeting").map(|greeting| greeting.text());
    match Name::answered(&ctx).or(greeting) {
        Some(answer) => Reply::new().text(format!("You answered: {answer}")),
        None => InputRequired::new()
            .ask_if_able("user_name", Name::form())
            .ask_if_able("greeting", sampling("Generate a greeting"))
            .into(),
    }
}
