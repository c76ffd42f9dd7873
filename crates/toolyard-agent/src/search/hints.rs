//! The services that a message seems to be about, told without being asked.

use std::fmt::Write;

use toolyard_core::Registry;

use super::english;
use super::services::{FoundService, Services, found};
use super::tools::SERVICES;

/// The prompt that gives a hint.
pub const PROMPT: &str = "service_hints";

/// How many services a hint names.
const MOST: usize = 2;
/// Shorter messages say too little.
const FEWEST_WORDS: usize = 3;
/// How long a summary may be in a hint, in characters.
const LONGEST_SUMMARY: usize = 300;

/// A service is spoken of if it counts that much, beside a word that it alone has, and once. Scores grow with the number of
/// services, so they are divided by what such a word counts. Messages to agents with the 70 servers of LiveMCPBench, and with samples
/// of recorded ones: at 1.5 the hint stays for 24 of the 27 tasks whose server comes first, and for 21 of 23 where summaries are
/// missing; of 40 messages that want no service (thanks, poems, arithmetic) none has one among the 70, 2 % have among 8, and 15 %
/// among 450, where a server may be about poems. At 1 that is 33 %, 7 % and 65 %; at 2 nine tasks lose theirs. Words that say nothing
/// are not looked at: with them, 13 % of those messages have a hint among the 70, and 42 % among 450.
const LEAST: f64 = 1.5;

/// A hint.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// What a model reads.
    pub text: String,
    /// The services that it names, the best first.
    pub services: Vec<FoundService>,
}

impl Services {
    /// The services that a message is about, as a caller sees them; `None` where none stands out.
    #[must_use]
    pub fn hint(&self, view: &Registry, message: &str) -> Option<Hint> {
        if message.split_whitespace().take(FEWEST_WORDS).count() < FEWEST_WORDS {
            return None;
        }
        let read = self.read(view);
        let least = LEAST * of_one_word(read.len());
        let mut fit = read.ranked(&english().telling(message));
        fit.retain(|(_, score)| *score >= least);
        let services = found(&fit, MOST);
        if services.is_empty() {
            return None;
        }
        let may_search = view.tool(SERVICES).is_ok();
        Some(Hint { text: told(&services, may_search), services })
    }
}

/// What a word counts that one of so many services has once, if it is as long as others are.
fn of_one_word(services: usize) -> f64 {
    ((services as f64 - 0.5) / 1.5 + 1.0).ln()
}

fn told(services: &[FoundService], may_search: bool) -> String {
    let more = if may_search { " (call search_known_services for full search)" } else { "" };
    let mut text = format!("Potentially relevant services for this request{more}:");
    for service in services {
        let kind = match service.r#type {
            super::ServiceKind::A2a => "a2a",
            super::ServiceKind::Mcp => "mcp",
        };
        let summary: String = service.summary.chars().take(LONGEST_SUMMARY).collect();
        let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(text, "\n- {} ({kind}): {}", service.id, summary.trim_end_matches('.'));
        let (word, names) = service.top();
        if !names.is_empty() {
            let _ = write!(text, ", {word}: {}", names.join(", "));
        }
    }
    text
}
