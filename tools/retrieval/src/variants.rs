//! Variants of the sets: the same needs with other catalogs, and in other words. A ranking that fits the style of a
//! set loses its lead in some of them.

use super::sets::{CatalogTool, RetrievalQuery, RetrievalSet};

/// A variant of each set.
pub(super) struct SetVariant {
    pub(super) name: &'static str,
    tool: fn(&mut CatalogTool),
    query: fn(&str, &mut SeededNumbers) -> String,
}

/// All variants, the unchanged sets first.
pub(super) const VARIANTS: [SetVariant; 15] = [
    SetVariant { name: "as they are", tool: |_| (), query: unchanged },
    SetVariant { name: "servers without names", tool: |tool| tool.server = None, query: unchanged },
    SetVariant { name: "first sentences of descriptions", tool: shorten_description, query: unchanged },
    SetVariant { name: "tools without parameters", tool: |tool| tool.remove_parameters(), query: unchanged },
    SetVariant { name: "tools without descriptions", tool: |tool| tool.description = None, query: unchanged },
    SetVariant {
        name: "names without meaning",
        tool: |tool| tool.name = "tool".to_owned(),
        query: unchanged,
    },
    SetVariant { name: "each tool as one text", tool: join_texts, query: unchanged },
    SetVariant { name: "queries of keywords", tool: |_| (), query: keywords },
    SetVariant { name: "queries within a story", tool: |_| (), query: story },
    SetVariant { name: "a request of another kind before", tool: |_| (), query: other_request },
    SetVariant { name: "a wrong letter in a query", tool: |_| (), query: wrong_letter },
    SetVariant { name: "two swapped letters in a query", tool: |_| (), query: swapped_letters },
    SetVariant { name: "two words of a query joined", tool: |_| (), query: joined_words },
    SetVariant { name: "a word of a query split", tool: |_| (), query: split_word },
    SetVariant { name: "names of tools as one word", tool: join_name, query: unchanged },
];

impl SetVariant {
    /// Returns the variant of a set, with some of its queries.
    pub(super) fn apply(&self, set: &RetrievalSet, max_queries: usize) -> RetrievalSet {
        let mut tools = set.tools.clone();
        tools.iter_mut().for_each(self.tool);
        let step = set.queries.len().div_ceil(max_queries).max(1);
        let queries = set.queries.iter().step_by(step).take(max_queries).map(|query| RetrievalQuery {
            text: (self.query)(&query.text, &mut SeededNumbers::new(&query.text)),
            ..query.clone()
        });
        RetrievalSet { name: set.name.clone(), queries: queries.collect(), tools }
    }
}

/// Pseudo-random numbers (SplitMix64) that depend on a text only.
pub(super) struct SeededNumbers(u64);

impl SeededNumbers {
    pub(super) fn new(text: &str) -> Self {
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// Returns a number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

fn unchanged(text: &str, _: &mut SeededNumbers) -> String {
    text.to_owned()
}

fn shorten_description(tool: &mut CatalogTool) {
    if let Some(description) = &mut tool.description {
        let text = description.trim_start();
        let end = text.find(['\n']).into_iter().chain(text.find(". ")).min();
        *description = text[..end.unwrap_or(text.len())].to_owned();
    }
}

fn join_texts(tool: &mut CatalogTool) {
    let mut text = format!("{} {} {}", tool.name, tool.server(), tool.description());
    for (name, description) in tool.parameters() {
        text += &format!(" {name} {description}");
    }
    tool.remove_parameters();
    (tool.server, tool.name, tool.description) = (None, "tool".to_owned(), Some(text));
}

fn join_name(tool: &mut CatalogTool) {
    tool.name = tool.name.chars().filter(|char| char.is_alphanumeric()).collect::<String>().to_lowercase();
}

/// Words that a search by keywords leaves out: the most frequent ones of English requests.
const NO_KEYWORDS: &str = "a an the of to in for and or on at by with from is are be was were it its this that these those as i me my \
    we our you your can could would will shall should do does did have has had not no if then than so such into about all any some \
    more most please want need like also what which who how when where there here up out am im provide give tell let know help find \
    get show using use them they he she his her us i'm i'd it's lastly finally additionally furthermore looking";

fn keywords(text: &str, _: &mut SeededNumbers) -> String {
    let words = text.split(|char: char| !char.is_alphanumeric() && !"-_'".contains(char));
    let words = words.filter(|word| !word.is_empty());
    let kept = |word: &&str| !NO_KEYWORDS.split_whitespace().any(|other| other.eq_ignore_ascii_case(word));
    words.filter(kept).take(8).collect::<Vec<_>>().join(" ")
}

/// Sentences around a request that say nothing about it.
const STORY: [&str; 14] = [
    "My sister and I had breakfast together this morning and she told me about her neighbours.",
    "It has been a long week, and my back still hurts from carrying boxes up the stairs.",
    "Yesterday my boss walked into the kitchen with a big smile and a cup of tea.",
    "We moved here four years ago, when the children were small and the garden was empty.",
    "Anna, who sits next to me, thinks I should have asked for this much earlier.",
    "Tom had three apples, gave one of them to his brother and ate the others.",
    "I promised my grandmother that I would take care of it before she comes back on Tuesday.",
    "To be honest, I have never done anything of the sort and feel a bit lost.",
    "The old red bicycle is still leaning against the wall behind the house.",
    "Nobody in the family remembers why we started, but everybody is waiting for me.",
    "Last summer we tried it twice with Peter's old laptop, and both times it rained.",
    "She laughed, closed the door, and said that there are worse ways to spend an evening.",
    "My dog is asleep under the table, so there is finally some time to sit down.",
    "We talked about it over dinner for two hours without agreeing on a single point.",
];

fn story(text: &str, numbers: &mut SeededNumbers) -> String {
    let start = numbers.below(STORY.len());
    let sentence = |at: usize| STORY[(start + at) % STORY.len()];
    format!("{} {} {} {text} {}", sentence(0), sentence(1), sentence(2), sentence(3))
}

/// Requests that no tool of most catalogs fulfils.
const REQUESTS: [&str; 6] = [
    "Please sharpen the kitchen knives and oil the door of the shed.",
    "Tell my cousin that the train to his village leaves from platform nine.",
    "I would like you to count the sheep behind our barn before it gets dark.",
    "Iron the white shirts and fold the towels, but leave the curtains alone.",
    "Could you remind the plumber that the tap upstairs still drips?",
    "Wake me up at half past six and put the kettle on.",
];

fn other_request(text: &str, numbers: &mut SeededNumbers) -> String {
    format!("{} {text}", REQUESTS[numbers.below(REQUESTS.len())])
}

/// Minimum length of a word that is misspelled.
const MIN_MISSPELLED: usize = 5;

/// An error in a word, of at least five letters.
pub(super) type Misspelling = fn(&str, &mut SeededNumbers) -> Option<String>;

/// Misspells a random word among those for which `is_able` returns `true`.
pub(super) fn misspell(
    text: &str,
    numbers: &mut SeededNumbers,
    misspelling: Misspelling,
    is_able: impl Fn(&str) -> bool,
) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let able: Vec<usize> = (0..words.len())
        .filter(|at| {
            let word = &words[*at];
            word.len() >= MIN_MISSPELLED
                && word.bytes().all(|byte| byte.is_ascii_alphabetic())
                && is_able(word)
        })
        .collect();
    if !able.is_empty() {
        let at = able[numbers.below(able.len())];
        if let Some(changed) = misspelling(&words[at], numbers) {
            words[at] = changed;
        }
    }
    words.join(" ")
}

pub(super) fn replace_letter(word: &str, numbers: &mut SeededNumbers) -> Option<String> {
    let at = numbers.below(word.len());
    let wrong = char::from(b'a' + numbers.below(26) as u8);
    Some(format!("{}{wrong}{}", &word[..at], &word[at + 1..]))
}

pub(super) fn swap_letters(word: &str, numbers: &mut SeededNumbers) -> Option<String> {
    let mut letters: Vec<char> = word.chars().collect();
    let able: Vec<usize> = (1..letters.len()).filter(|at| letters[at - 1] != letters[*at]).collect();
    let at = *able.get(numbers.below(able.len().max(1)))?;
    letters.swap(at - 1, at);
    Some(letters.into_iter().collect())
}

fn wrong_letter(text: &str, numbers: &mut SeededNumbers) -> String {
    misspell(text, numbers, replace_letter, |_| true)
}

fn swapped_letters(text: &str, numbers: &mut SeededNumbers) -> String {
    misspell(text, numbers, swap_letters, |_| true)
}

fn joined_words(text: &str, numbers: &mut SeededNumbers) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_part = |word: &str| {
        word.len() >= 3
            && word.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !NO_KEYWORDS.split_whitespace().any(|other| other.eq_ignore_ascii_case(word))
    };
    let able: Vec<usize> =
        (1..words.len()).filter(|at| is_part(words[at - 1]) && is_part(words[*at])).collect();
    if able.is_empty() {
        return text.to_owned();
    }
    let at = able[numbers.below(able.len())];
    [words[..at].join(" "), words[at..].join(" ")].concat()
}

/// Splits a compound word of English, if the query has one.
fn split_word(text: &str, numbers: &mut SeededNumbers) -> String {
    const COMPOUNDS: [(&str, &str); 29] = [
        ("database", "data base"),
        ("website", "web site"),
        ("playlist", "play list"),
        ("download", "down load"),
        ("upload", "up load"),
        ("email", "e mail"),
        ("airport", "air port"),
        ("feedback", "feed back"),
        ("keyword", "key word"),
        ("keywords", "key words"),
        ("screenshot", "screen shot"),
        ("spreadsheet", "spread sheet"),
        ("workflow", "work flow"),
        ("healthcare", "health care"),
        ("marketplace", "market place"),
        ("background", "back ground"),
        ("network", "net work"),
        ("password", "pass word"),
        ("homepage", "home page"),
        ("timezone", "time zone"),
        ("workout", "work out"),
        ("github", "git hub"),
        ("youtube", "you tube"),
        ("linkedin", "linked in"),
        ("instagram", "insta gram"),
        ("cryptocurrency", "crypto currency"),
        ("podcast", "pod cast"),
        ("newsletter", "news letter"),
        ("webpage", "web page"),
    ];
    let lowered = text.to_ascii_lowercase();
    let able: Vec<_> = COMPOUNDS.iter().filter(|(joined, _)| lowered.contains(joined)).collect();
    if able.is_empty() {
        return text.to_owned();
    }
    let (joined, split) = able[numbers.below(able.len())];
    lowered.replacen(joined, split, 1)
}
