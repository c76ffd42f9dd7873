//! Results made shorter after a model has refused them: for hosts, where a conversation has become too long after all.

/// What stands behind a result that was made shorter.
pub const NOTICE: &str = "[truncated to fit context window]";

/// What is left of a result at least, in characters.
const LEAST: usize = 200;

/// How many characters make a token, about.
const CHARS_PER_TOKEN: u64 = 4;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmed {
    /// How many characters the whole may have.
    pub budget: usize,
    /// How many results are shorter than they were.
    pub results: usize,
    /// Whether the whole is within the budget now. Where it is not, there is nothing left in results to take away.
    pub fits: bool,
}

/// Makes the results of tools shorter, the longest first, until the whole conversation fits into the window of a model that
/// has just refused it. `others` is how many characters everything else in the conversation has. `None`: the model
/// did not refuse it for its length, and nothing is changed.
///
/// ```
/// use toolyard_agent::trim::trim_large_tool_results;
///
/// let error = "This model's maximum context length is 1000 tokens. However, your messages resulted in 2500 tokens.";
/// let mut results = vec!["short".to_owned(), "long ".repeat(2000)];
/// let trimmed = trim_large_tool_results(&mut results, 500, 400, error).unwrap();
/// assert!(trimmed.fits && results[1].ends_with("[truncated to fit context window]"));
/// ```
pub fn trim_large_tool_results(
    results: &mut [String],
    others: usize,
    status: u16,
    error: &str,
) -> Option<Trimmed> {
    let budget = budget(status, error)?;
    let mut lengths: Vec<_> = results.iter().map(|result| result.chars().count()).collect();
    let mut total = lengths.iter().sum::<usize>().saturating_add(others);
    let mut trimmed = 0;
    while total > budget {
        let least = LEAST + NOTICE.len() + 1;
        let longest = (0..lengths.len()).filter(|at| lengths[*at] > least).max_by_key(|at| lengths[*at]);
        let Some(longest) = longest else { break };
        let before = lengths[longest];
        let length = before.saturating_sub(total - budget).max(least);
        shorten(&mut results[longest], length - NOTICE.len() - 1);
        lengths[longest] = length;
        total -= before - length;
        trimmed += 1;
    }
    Some(Trimmed { budget, results: trimmed, fits: total <= budget })
}

/// How many characters a conversation may have, by what a model says that has refused it: nine tenths of its window.
/// `None` where it says nothing of that.
#[must_use]
pub fn budget(status: u16, error: &str) -> Option<usize> {
    let window = || number_behind(error, "maximum context length is ", "");
    let tokens = if status == 400 {
        window().or_else(|| number_behind(error, "resulted in ", " tokens"))
    } else {
        None
    };
    let chars = tokens?.saturating_mul(CHARS_PER_TOKEN) / 10 * 9;
    Some(usize::try_from(chars).unwrap_or(usize::MAX))
}

/// The number between two texts.
fn number_behind(text: &str, before: &str, behind: &str) -> Option<u64> {
    text.match_indices(before).find_map(|(at, _)| {
        let rest = &text[at + before.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest[..digits].parse().ok()?;
        rest[digits..].starts_with(behind).then_some(number)
    })
}

fn shorten(result: &mut String, chars: usize) {
    if let Some((end, _)) = result.char_indices().nth(chars) {
        result.truncate(end);
    }
    result.push('\n');
    result.push_str(NOTICE);
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str =
        "This model's maximum context length is 500 tokens. However, your messages resulted in 900 tokens.";

    #[test]
    fn the_budget_is_read_from_what_the_model_says() {
        let check = |status, error: &str, expected| assert_eq!(budget(status, error), expected, "{error}");
        check(400, REFUSED, Some(1800));
        check(400, "maximum context length is 128000", Some(460_800));
        check(400, "your prompt resulted in 1000 tokens", Some(3600));
        check(400, "resulted in 7 errors, and resulted in 1000 tokens", Some(3600));
        check(400, "maximum context length is 99999999999999999999", None);
        check(400, &format!("maximum context length is {}", u64::MAX), Some(usize::MAX / 10 * 9));
        check(400, "maximum context length is unknown", None);
        check(400, "bad request", None);
        check(400, "", None);
        check(429, REFUSED, None);
        check(500, REFUSED, None);
    }

    #[test]
    fn the_longest_results_are_made_shorter_until_the_whole_fits() {
        #[track_caller]
        fn check(lengths: &[usize], others: usize, expected: &[usize], fits: bool) {
            let mut results: Vec<_> = lengths.iter().map(|length| "é".repeat(*length)).collect();
            let trimmed = trim_large_tool_results(&mut results, others, 400, REFUSED).expect("a budget");
            let left: Vec<_> = results.iter().map(|result| result.chars().count()).collect();
            assert_eq!((left.as_slice(), trimmed.fits), (expected, fits));
            assert_eq!(left.iter().sum::<usize>() + others <= 1800, fits);
            let noticed = results.iter().filter(|result| result.ends_with(&format!("é\n{NOTICE}"))).count();
            assert_eq!(noticed, trimmed.results);
        }
        check(&[], 10, &[], true);
        check(&[], 2000, &[], false);
        check(&[1800], 0, &[1800], true);
        check(&[1801], 0, &[1800], true);
        check(&[300, 5000], 100, &[300, 1400], true);
        // No less than 200 characters and the notice are left of any.
        check(&[1000, 5000], 1000, &[566, 234], true);
        check(&[1000, 5000], 1700, &[234, 234], false);
        check(&[200, 5000], 1700, &[200, 234], false);
    }

    #[test]
    fn what_was_not_refused_for_its_length_is_left_alone() {
        let mut results = vec!["x".repeat(5000)];
        assert_eq!(trim_large_tool_results(&mut results, 0, 500, REFUSED), None);
        assert_eq!(results[0].len(), 5000);
    }
}
