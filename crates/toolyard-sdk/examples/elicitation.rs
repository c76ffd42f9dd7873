//! Tools that ask the user: for a form, for a page to be opened, and question after question.
//!
//! ```sh
//! cargo run -p toolyard-sdk --example elicitation                   # on standard input and output
//! cargo run -p toolyard-sdk --example elicitation -- 127.0.0.1:8080 # on http://127.0.0.1:8080/mcp
//! ```

mod support;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_sdk::{Context, Elicit, Elicited, InputRequired, Reply, Result, Server, ToolFailure};

/// A form: its fields are texts, numbers, booleans and choices.
#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many you are
    #[schemars(range(min = 1, max = 12))]
    guests: u8,
    /// Where you would like to sit
    seats: Seats,
    /// Whether there is a dog
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
        Elicited::Accepted(Booking { guests, seats, dog }) => {
            let dog = if dog { " and a dog" } else { "" };
            format!("A table for {guests}{dog} is booked ({seats:?}).")
        }
        Elicited::Declined => "No table is booked, as you said no.".to_owned(),
        Elicited::Cancelled => "No table is booked. Ask again when the user has time.".to_owned(),
    })
}

/// What must not pass through the client, such as a password, is entered on a page of yours.
async fn sign_in(ctx: Context) -> Result<&'static str, ToolFailure> {
    Ok(match ctx.elicit_url("Sign in to see your bookings.", "https://example.com/sign-in").await? {
        Elicited::Accepted(()) => "Call me again when the page says that you are signed in.",
        Elicited::Declined | Elicited::Cancelled => "Without signing in there is nothing to see.",
    })
}

const QUESTIONS: [(&str, i64); 2] = [("What is 6 times 7?", 42), ("And 7 times 8?", 56)];

#[derive(Deserialize, JsonSchema)]
struct Guess {
    number: i64,
}

/// What is remembered from round to round. The client carries it, sealed: it can neither read nor change it.
#[derive(Default, Serialize, Deserialize)]
struct Score {
    asked: usize,
    right: usize,
}

impl Score {
    fn count(&mut self, guess: &Guess) {
        let is_right = QUESTIONS.get(self.asked).is_some_and(|(_, solution)| *solution == guess.number);
        self.right += usize::from(is_right);
        self.asked += 1;
    }
}

/// Returns a question, and is called again with the answer: meanwhile nothing waits here.
async fn quiz(ctx: Context) -> Result<Reply, ToolFailure> {
    let mut score: Score = ctx.state()?.unwrap_or_default();
    match ctx.elicited::<Guess>("guess") {
        // The first round.
        None => {}
        Some(Elicited::Accepted(guess)) => score.count(&guess),
        Some(Elicited::Declined | Elicited::Cancelled) => {
            return Ok(Reply::new().text("Another time, then."));
        }
    }
    let Some(&(question, _)) = QUESTIONS.get(score.asked) else {
        return Ok(Reply::new().text(format!("{} of {} were right.", score.right, QUESTIONS.len())));
    };
    Ok(InputRequired::new().ask("guess", Elicit::form::<Guess>(question)).state(&score)?.into())
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("restaurant", "1.0.0")
        .tool("book_table", "Books a table; asks the user for how many.", book_table)?
        .tool("sign_in", "Lets the user sign in.", sign_in)?
        .tool("quiz", "Asks the user a few questions while the food is cooking.", quiz)?;
    support::serve(server).await
}
