use super::*;

/// Descriptions of a few services, in the format of the original agents.
const SERVICES: [&str; 4] = [
    "SalesOpsAgent Autonomous agent for complex sales workflows and multi-step reporting. generate-qbr-report audit-pipeline",
    "salesforce-mcp Direct access to Salesforce objects (Accounts, Leads, Opportunities). search_leads update_opportunity",
    "calendar-mcp Reschedule a meeting, find free time. Meeting rooms. reschedule_meeting find_time",
    "aws-billing Spend audit of AWS accounts: AWS spend by service, spend audit reports",
];

/// Checks scores that were computed by a separate Python program from the same description, or by hand.
#[track_caller]
fn check(texts: &[&str], query: &str, expected: &[(usize, f64)]) {
    let ranker = Bm25Ranker::default();
    let ranked = ranker.rank_with_scores(0..texts.len(), |at| texts[*at].to_owned(), query);
    let order: Vec<usize> = ranked.iter().map(|(at, _)| *at).collect();
    assert_eq!(order, expected.iter().map(|(at, _)| *at).collect::<Vec<_>>(), "{query}");
    for ((_, score), (at, expected)) in ranked.iter().zip(expected) {
        assert!((score - expected).abs() < 1e-8, "{query}: {at} has {score}, not {expected}");
    }
    assert_eq!(ranker.rank(0..texts.len(), |at| texts[*at].to_owned(), query), order);
}

#[test]
fn scores_follow_okapi() {
    check(&SERVICES, "reschedule meeting", &[(2, 3.766058384)]);
    check(&SERVICES, "sales report", &[(0, 2.222719023)]);
    // By hand: the rarity of a word in one of one text is ln(0.5 / 1.5 + 1), and one word in a text of average length
    // has the weight 1.
    check(&["kelvin"], "Kelvin", &[(0, (4.0_f64 / 3.0).ln())]);
    // And that of a word in two of two texts is ln(0.5 / 2.5 + 1).
    check(&["kelvin scale", "scale kelvin"], "kelvin", &[(0, 1.2_f64.ln()), (1, 1.2_f64.ln())]);
}

#[test]
fn adjacent_words_count_double() {
    check(&SERVICES, "aws spend audit", &[(3, 11.256797885), (0, 0.639828167)]);
    check(
        &["meeting meeting meeting", "MEETING  room", "meeting room meeting ROOM"],
        "meeting room",
        &[(2, 3.309927133), (1, 0.710041202), (0, 0.222552321)],
    );
    check(
        &["aa bb cc", "one two", "two one two one", "one"],
        "one two one",
        &[(2, 4.373412004), (1, 2.28896851), (3, 0.441898161)],
    );
    let text = "alpha beta gamma".repeat(3);
    check(&[&text], "alpha beta gamma alpha", &[(0, 2.972714749)]);
    // Words without a match do not separate pairs: the pairs are formed from the remaining words.
    check(
        &SERVICES,
        "Audit the pipeline of sales leads",
        &[(0, 2.86254719), (1, 1.740683573), (3, 1.026884712)],
    );
}

#[test]
fn text_without_a_match_is_left_out() {
    check(&SERVICES, "an of by", &[]);
    check(&SERVICES, "nothing here fits", &[]);
    check(&SERVICES, "", &[]);
    check(&["", "", ""], "words", &[]);
    check(&[], "words", &[]);
}

#[test]
fn equal_scores_keep_their_order() {
    check(&["same words", "same words", "other"], "same words", &[(0, 1.724783961), (1, 1.724783961)]);
}

#[test]
fn only_ascii_letters_and_digits_form_words() {
    check(
        &["caféteria menu", "cafe menu", "CAFÉ menu"],
        "café menu",
        &[(2, 0.64499926), (0, 0.534777867), (1, 0.142705305)],
    );
    // The Kelvin sign is another character with the same lower case.
    check(&["\u{212a}elvin scale", "kelvin scale"], "kelvin", &[(0, 0.182321557), (1, 0.182321557)]);
    // The lower case of this letter has two characters, so it is unchanged.
    check(&["İstanbul", "stanbul"], "istanbul stanbul", &[(0, 0.182321557), (1, 0.182321557)]);
}
