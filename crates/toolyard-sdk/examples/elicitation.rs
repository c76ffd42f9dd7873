//! Tools that ask the user: with a form, with a URL, and in several rounds.
//!
//! ```sh
//! cargo run -p toolyard-sdk --example elicitation                   # on standard input and output
//! cargo run -p toolyard-sdk --example elicitation -- 127.0.0.1:8080 # on http://127.0.0.1:8080/mcp
//! ```

mod support;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{
    Context, ElicitRequest, ElicitResult, InputRequired, Result, Server, ToolFailure, ToolReply,
};

/// A form: its fields are strings, numbers, booleans and choices.
#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// Number of guests
    #[schemars(range(min = 1, max = 12))]
    guests: u8,
    /// Preferred seats
    seats: Seats,
    /// You bring a dog
    #[serde(default)]
    dog: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Seats {
    /// In the dining room
    Inside,
    /// On the terrace
    Outside,
}

/// Waits for the answer, while the call stays open.
async fn book_table(ctx: Context) -> Result<String, ToolFailure> {
    Ok(match ctx.elicit::<Booking>("A table for tonight: tell us more.").await? {
        ElicitResult::Accepted(Booking { guests, seats, dog }) => {
            let dog = if dog { " and a dog" } else { "" };
            format!("A table for {guests}{dog} is booked ({seats:?}).")
        }
        ElicitResult::Declined => "No table is booked, as you said no.".to_owned(),
        ElicitResult::Cancelled => "No table is booked. Ask again when the user has time.".to_owned(),
    })
}

/// The user enters data that must not pass through the client, such as a password, on a page of yours.
async fn sign_in(ctx: Context) -> Result<&'static str, ToolFailure> {
    Ok(match ctx.elicit_url("Sign in to see your bookings.", "https://example.com/sign-in").await? {
        ElicitResult::Accepted(()) => "Call me again when the page says that you are signed in.",
        ElicitResult::Declined | ElicitResult::Cancelled => "Without signing in there is nothing to see.",
    })
}

const QUESTIONS: [(&str, i64); 2] = [("What is 6 times 7?", 42), ("And 7 times 8?", 56)];

#[derive(Deserialize, JsonSchema)]
struct Guess {
    number: i64,
}

/// The state between the rounds. The client carries it sealed, and can neither read nor change it.
#[derive(Default, Serialize, Deserialize)]
struct Score {
    rounds: usize,
    right: usize,
}

impl Score {
    fn count(&mut self, guess: &Guess) {
        let is_right = QUESTIONS.get(self.rounds).is_some_and(|(_, solution)| *solution == guess.number);
        self.right += usize::from(is_right);
        self.rounds += 1;
    }
}

/// Returns a question and is called again with the answer; nothing waits on the server meanwhile.
async fn quiz(ctx: Context) -> Result<ToolReply, ToolFailure> {
    let mut score: Score = ctx.state()?.unwrap_or_default();
    match ctx.elicit_answer::<Guess>("guess") {
        // The first round.
        None => {}
        Some(ElicitResult::Accepted(guess)) => score.count(&guess),
        Some(ElicitResult::Declined | ElicitResult::Cancelled) => {
            return Ok(ToolReply::new().text("Another time, then."));
        }
    }
    let Some(&(question, _)) = QUESTIONS.get(score.rounds) else {
        return Ok(ToolReply::new().text(format!("{} of {} were right.", score.right, QUESTIONS.len())));
    };
    Ok(InputRequired::new().ask("guess", ElicitRequest::form::<Guess>(question)).state(&score)?.into())
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("restaurant", "1.0.0")
        .tool("book_table", "Books a table; asks the user for how many.", book_table)?
        .tool("sign_in", "Lets the user sign in.", sign_in)?
        .tool("quiz", "Asks the user a few questions while the food is cooking.", quiz)?;
    support::serve(server).await
}
