//! Shortens tool results after a model has refused a conversation for its length, for hosts.

/// Notice at the end of a shortened result.
pub const NOTICE: &str = "[truncated to fit context window]";

/// Minimum number of characters that remain of a result.
const LEAST: usize = 200;

/// Approximate number of characters per token.
const CHARS_PER_TOKEN: u64 = 4;

/// Outcome of shortening a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimOutcome {
    /// Maximum number of characters of the conversation.
    pub budget: usize,
    /// Number of shortened results.
    pub results: usize,
    /// `true` if the conversation now fits the budget. Otherwise all results are as short as possible.
    pub fits: bool,
}

/// Shortens the longest results of tools until the whole conversation fits into the context window of a model that has
/// just refused it. `others` is the number of characters of everything else in the conversation. Returns `None`, and
/// changes nothing, if the model did not refuse the conversation for its length.
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
) -> Option<TrimOutcome> {
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
    Some(TrimOutcome { budget, results: trimmed, fits: total <= budget })
}

/// Returns the maximum number of characters of a conversation, from the error of a model: nine tenths of its context
/// window. Returns `None` if the error does not tell the size of the window.
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

/// Returns the number between two texts.
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
    fn budget_is_parsed_from_the_error() {
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
    fn longest_results_are_shortened_until_all_fit() {
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
        // At least 200 characters and the notice remain of each result.
        check(&[1000, 5000], 1000, &[566, 234], true);
        check(&[1000, 5000], 1700, &[234, 234], false);
        check(&[200, 5000], 1700, &[200, 234], false);
    }

    #[test]
    fn other_errors_leave_results_unchanged() {
        let mut results = vec!["x".repeat(5000)];
        assert_eq!(trim_large_tool_results(&mut results, 0, 500, REFUSED), None);
        assert_eq!(results[0].len(), 5000);
    }
}
