//! Suggests the services that a message seems to be about.

use std::fmt::Write;

use toolyard_core::Registry;

use super::english;
use super::services::{FoundService, KnownService, ServiceIndex};
use super::tools::SERVICES;

/// Name of the prompt that returns a hint.
pub const PROMPT: &str = "service_hints";

/// Maximum number of services in a hint.
const MAX_RESULTS: usize = 2;
/// Minimum number of words of a message.
const FEWEST_WORDS: usize = 3;
/// Maximum length of a summary in a hint, in characters.
const MAX_SUMMARY_LENGTH: usize = 300;

/// Minimum score of a service in a hint, relative to the score of a service that alone has one word of the message,
/// once. Scores grow with the number of services, so they are divided by the score of such a word. Measured with
/// messages to agents, with the 70 servers of LiveMCPBench and with samples of recorded ones: at 1.5, the hint remains
/// for 24 of the 27 tasks whose server ranks first, and for 21 of 23 without summaries; of 40 messages that need no
/// service (thanks, poems, arithmetic) none has a hint among the 70, 2 % have one among 8, and 15 % among 450, where
/// one server may be about poems. At 1 these are 33 %, 7 % and 65 %; at 2 nine tasks lose their hint. Stop words are
/// removed first: with them, 13 % of these messages have a hint among the 70, and 42 % among 450.
const LEAST: f64 = 1.5;

/// Minimum number of different words that the message and a service have in common, unless one is in the service's name.
const FEWEST_COMMON_WORDS: usize = 2;

/// The same for a service whose name has a word of the message, if the message has at most so many words without stop
/// words, and the word at least so many letters: "what is the weather in Paris" needs no second word. Measured with 40
/// other messages that need no service: none of them has a hint among the 70, as without this rule, and 17.9 % instead
/// of 16.7 % have one among 450; with messages of three words it would be 1 among the 70, and 19.6 %.
const LEAST_STRONG: f64 = 0.4;
const MAX_STRONG_WORDS: usize = 2;
const SHORTEST_STRONG_WORD: usize = 4;

/// A hint.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceHint {
    /// Text for a model.
    pub text: String,
    /// Services that the text names, the best first.
    pub services: Vec<FoundService>,
}

impl ServiceIndex {
    /// Returns the services that a message is about, as a caller sees them; `None` if none stands out.
    #[must_use]
    pub async fn hint(&self, view: &Registry, message: &str) -> Option<ServiceHint> {
        if message.split_whitespace().take(FEWEST_WORDS).count() < FEWEST_WORDS {
            return None;
        }
        let (read, message) = (self.read(view), english().content_words(message));
        let of_word = of_one_word(read.len());
        let mut fit = read.ranked(&message);
        let words: Vec<&str> = message.split(' ').filter(|word| word.len() >= SHORTEST_STRONG_WORD).collect();
        let is_short = message.split(' ').count() <= MAX_STRONG_WORDS;
        fit.retain(|(service, score)| {
            let is_named = is_named(service, &words);
            // A server that repeats a single common word, such as `example`, is not about it.
            let is_clear = is_named || read.count_words(service, &message) >= FEWEST_COMMON_WORDS;
            *score >= LEAST * of_word && is_clear || *score >= LEAST_STRONG * of_word && is_named && is_short
        });
        let services = self.top_services(view, &message, &fit, MAX_RESULTS).await;
        if services.is_empty() {
            return None;
        }
        let may_search = view.tool(SERVICES).is_ok();
        Some(ServiceHint { text: hint_text(&services, may_search), services })
    }
}

/// Returns `true` if one of these words is a word of the name of a service.
fn is_named(service: &KnownService, words: &[&str]) -> bool {
    let names = [Some(&*service.name), service.display_name.as_deref()];
    let names = names.into_iter().flatten().map(|name| english().content_words(name));
    names.into_iter().any(|name| name.split(' ').any(|word| words.contains(&word)))
}

/// Returns the score of a word that one of so many services has once, if its text is of average length.
fn of_one_word(services: usize) -> f64 {
    ((services as f64 - 0.5) / 1.5 + 1.0).ln()
}

fn hint_text(services: &[FoundService], may_search: bool) -> String {
    let more = if may_search { " (call search_known_services for full search)" } else { "" };
    let mut text = format!("Potentially relevant services for this request{more}:");
    for service in services {
        let kind = match service.r#type {
            super::ServiceKind::A2a => "a2a",
            super::ServiceKind::Mcp => "mcp",
        };
        let summary: String = service.summary.chars().take(MAX_SUMMARY_LENGTH).collect();
        let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(text, "\n- {} ({kind}): {}", service.id, summary.trim_end_matches('.'));
        let (word, names) = service.top();
        if !names.is_empty() {
            let _ = write!(text, ", {word}: {}", names.join(", "));
        }
    }
    text
}
