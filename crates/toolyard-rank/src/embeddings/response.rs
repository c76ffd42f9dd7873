//! The response of an embeddings endpoint, which may contain anything.

use serde::Deserialize;

use super::{EmbeddingVector, MAX_DIMENSIONS};

/// Maximum bytes of one number with its separator, and of what surrounds a vector and all of them.
const MAX_NUMBER_BYTES: usize = 26;
const MAX_ENVELOPE_BYTES: usize = 64 << 10;
const MAX_ITEM_BYTES: usize = 256;

/// A response that is not the vectors that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// The body is not the JSON of a list of embeddings.
    #[error("it is not a list of embeddings")]
    Shape,
    /// There are more or fewer vectors than texts.
    #[error("it has {0} embeddings for {1} texts")]
    Count(usize, usize),
    /// An index is missing, is used twice or belongs to no text.
    #[error("its indexes are not those of the texts")]
    Index,
    /// A vector has no dimensions, too many, or others than the rest.
    #[error("an embedding has {0} dimensions instead of {1}")]
    Dimensions(usize, usize),
    /// A number is not finite, or all are 0.
    #[error("an embedding has no direction")]
    Direction,
}

#[derive(Deserialize)]
struct EmbeddingList {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// Maximum bytes of a response for this many texts.
pub fn response_limit(texts: usize, dimensions: Option<usize>) -> usize {
    let numbers = dimensions.unwrap_or(MAX_DIMENSIONS).saturating_mul(MAX_NUMBER_BYTES);
    let vector = numbers.saturating_add(MAX_ITEM_BYTES);
    texts.saturating_mul(vector).saturating_add(MAX_ENVELOPE_BYTES)
}

/// Reads the response for some texts. Returns their vectors with length 1, in the order of the texts. `dimensions` is
/// the expected number of dimensions, if it is known.
///
/// # Errors
/// If there is not exactly one vector for each text, all with the same number of dimensions and with a direction.
pub fn parse_embeddings(
    body: &[u8],
    texts: usize,
    dimensions: Option<usize>,
) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
    let EmbeddingList { data } = serde_json::from_slice(body).map_err(|_| EmbeddingError::Shape)?;
    if data.len() != texts {
        return Err(EmbeddingError::Count(data.len(), texts));
    }
    let first = data.first().map_or(0, |item| item.embedding.len());
    let expected = dimensions.unwrap_or(first);
    let mut vectors: Vec<Option<EmbeddingVector>> = vec![None; texts];
    for (position, item) in data.iter().enumerate() {
        let length = item.embedding.len();
        if length != expected || !(1..=MAX_DIMENSIONS).contains(&length) {
            return Err(EmbeddingError::Dimensions(length, expected.min(MAX_DIMENSIONS)));
        }
        // Some endpoints leave out the index; the order is that of the texts then.
        let place = vectors.get_mut(item.index.unwrap_or(position)).filter(|place| place.is_none());
        *place.ok_or(EmbeddingError::Index)? = Some(unit(&item.embedding)?);
    }
    vectors.into_iter().collect::<Option<_>>().ok_or(EmbeddingError::Index)
}

/// Scales a vector to length 1.
fn unit(vector: &[f32]) -> Result<EmbeddingVector, EmbeddingError> {
    let square: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    let length = square.sqrt();
    if !length.is_finite() || length < f64::from(f32::MIN_POSITIVE) {
        return Err(EmbeddingError::Direction);
    }
    Ok(vector.iter().map(|value| (f64::from(*value) / length) as f32).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(
        body: &str,
        texts: usize,
        dimensions: Option<usize>,
        expected: Result<&[&[f32]], EmbeddingError>,
    ) {
        let read = parse_embeddings(body.as_bytes(), texts, dimensions);
        let read = read.map(|vectors| vectors.iter().map(|vector| vector.to_vec()).collect::<Vec<_>>());
        let expected = expected.map(|vectors| vectors.iter().map(|vector| vector.to_vec()).collect());
        assert_eq!(read, expected, "{body}");
    }

    /// The example of OpenAI's reference of `POST /v1/embeddings`, with the omitted numbers left out.
    const EXAMPLE: &str = r#"{
      "object": "list",
      "data": [
        {
          "object": "embedding",
          "embedding": [0.0023064255, -0.009327292, -0.0028842222],
          "index": 0
        }
      ],
      "model": "text-embedding-ada-002",
      "usage": {"prompt_tokens": 8, "total_tokens": 8}
    }"#;

    #[test]
    fn vectors_are_in_the_order_of_the_texts() {
        let [x, y]: [&[f32]; 2] = [&[1.0, 0.0], &[0.0, 1.0]];
        let both = r#"{"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 0]}]}"#;
        check(both, 2, None, Ok(&[x, y]));
        check(both, 2, Some(2), Ok(&[x, y]));
        check(
            r#"{"data": [{"embedding": [3, 0]}, {"embedding": [0, 1e-9]}], "x": {}}"#,
            2,
            None,
            Ok(&[x, y]),
        );
        check(r#"{"data": []}"#, 0, None, Ok(&[]));
    }

    #[test]
    fn example_of_the_reference_is_read() {
        let vectors = parse_embeddings(EXAMPLE.as_bytes(), 1, None).expect("vectors");
        let length: f32 = vectors[0].iter().map(|value| value * value).sum();
        assert!(vectors.len() == 1 && vectors[0].len() == 3 && (length - 1.0).abs() < 1e-6, "{vectors:?}");
    }

    #[test]
    fn other_responses_are_refused() {
        use EmbeddingError::{Count, Dimensions, Direction, Index, Shape};
        let check = |body: &str, expected: EmbeddingError| check(body, 2, None, Err(expected));
        for body in [
            "",
            "null",
            "[]",
            "{}",
            "<html>",
            r#"{"data": {}}"#,
            r#"{"data": [1, 2]}"#,
            r#"{"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]}"#,
            r#"{"data": [{"embedding": [null]}, {"embedding": [1]}]}"#,
            r#"{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}"#,
            r#"{"data": [{"embedding": [1], "index": -1}, {"embedding": [1]}]}"#,
            r#"{"error": {"message": "no"}}"#,
        ] {
            check(body, Shape);
        }
        check(&"[".repeat(100_000), Shape);
        check(r#"{"data": [{"embedding": [1]}]}"#, Count(1, 2));
        check(r#"{"data": [{"embedding": [1]}, {"embedding": [1]}, {"embedding": [1]}]}"#, Count(3, 2));
        check(r#"{"data": [{"embedding": [1], "index": 0}, {"embedding": [1], "index": 0}]}"#, Index);
        check(r#"{"data": [{"embedding": [1], "index": 7}, {"embedding": [1], "index": 0}]}"#, Index);
        check(r#"{"data": [{"embedding": [1, 2]}, {"embedding": [1]}]}"#, Dimensions(1, 2));
        check(r#"{"data": [{"embedding": []}, {"embedding": []}]}"#, Dimensions(0, 0));
        check(r#"{"data": [{"embedding": [0, 0]}, {"embedding": [1, 2]}]}"#, Direction);
        // Which error it is depends on the way in which features of the parser read numbers.
        let huge = r#"{"data": [{"embedding": [1e300]}, {"embedding": [1]}]}"#;
        assert!(parse_embeddings(huge.as_bytes(), 2, None).is_err());
        let long = format!("[{}1]", "1,".repeat(MAX_DIMENSIONS));
        check(
            &format!(r#"{{"data": [{{"embedding": {long}}}, {{"embedding": {long}}}]}}"#),
            Dimensions(MAX_DIMENSIONS + 1, MAX_DIMENSIONS),
        );
    }

    #[test]
    fn expected_dimensions_are_required() {
        let body = r#"{"data": [{"embedding": [1, 2]}]}"#;
        check(body, 1, Some(3), Err(EmbeddingError::Dimensions(2, 3)));
    }

    #[test]
    fn limit_grows_with_texts_and_dimensions() {
        assert!(response_limit(1, Some(2)) < response_limit(1, Some(3)));
        assert!(response_limit(64, None) < 16 << 20);
        assert_eq!(response_limit(usize::MAX, Some(usize::MAX)), usize::MAX);
    }

    proptest! {
        #[test]
        fn any_body_is_a_vector_or_an_error(body in prop::collection::vec(any::<u8>(), 0..200), texts in 0..4_usize) {
            if let Ok(vectors) = parse_embeddings(&body, texts, None) {
                prop_assert_eq!(vectors.len(), texts);
            }
        }

        #[test]
        fn any_list_is_read_as_unit_vectors_or_refused(
            lists in prop::collection::vec((prop::option::of(0..4_usize), prop::collection::vec(any::<f64>(), 0..4)), 0..4),
        ) {
            let number = |value: &f64| value.to_string();
            let item = |(index, list): &(Option<usize>, Vec<f64>)| {
                let index = index.map_or("null".to_owned(), |index| index.to_string());
                format!(r#"{{"index": {index}, "embedding": [{}]}}"#, list.iter().map(number).collect::<Vec<_>>().join(","))
            };
            let body = format!(r#"{{"data": [{}]}}"#, lists.iter().map(item).collect::<Vec<_>>().join(","));
            if let Ok(vectors) = parse_embeddings(body.as_bytes(), lists.len(), None) {
                for vector in &vectors {
                    let length: f32 = vector.iter().map(|value| value * value).sum();
                    prop_assert!((length - 1.0).abs() < 1e-3, "{}", length);
                }
            }
        }
    }
}
