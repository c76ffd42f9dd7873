//! The words of texts, compared as multisets.

use std::collections::HashMap;

/// Returns the harmonic mean of precision and recall of the words of a text.
pub(crate) fn f1(text: &str, expected: &str) -> f64 {
    let (text, expected) = (words(text), words(expected));
    let common: usize =
        text.iter().map(|(word, count)| (*count).min(*expected.get(word).unwrap_or(&0))).sum();
    let total = text.values().sum::<usize>() + expected.values().sum::<usize>();
    if total == 0 { 1.0 } else { 2.0 * common as f64 / total as f64 }
}

fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric() && c != '_') {
        if !word.is_empty() {
            *words.entry(word.to_owned()).or_insert(0) += 1;
        }
    }
    words
}

/// Returns a text in lower case with single blanks, to look for snippets.
pub(crate) fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_of_words() {
        assert!((f1("a b, B", "b a") - 0.8).abs() < 1e-9);
        assert!((f1("", "") - 1.0).abs() < 1e-9);
        assert!(f1("a", "").abs() < 1e-9);
    }
}
