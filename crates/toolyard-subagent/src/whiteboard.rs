//! Whiteboards: texts by key that a caller and its subagents share. They are kept in the memory of one gateway.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::record::SubagentOwner;

/// Maximum length of the id of a board and of a key, in characters.
pub(crate) const MAX_NAME_LENGTH: usize = 128;

/// Number of characters of a value that a list shows.
const PREVIEW_CHARS: usize = 120;

/// Time after which a board that is not used is removed.
const UNUSED_TIME: Duration = Duration::from_secs(24 * 3600);

/// Limits of whiteboards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WhiteboardLimits {
    /// Maximum bytes of all boards of one owner: values with their keys and the ids of their boards, and 100 bytes for each.
    pub owner_bytes: usize,
    /// Maximum bytes of all boards of all owners.
    pub total_bytes: usize,
}

/// The whiteboards of a gateway. Clones share them. By default they have no room.
#[derive(Clone, Default)]
pub struct Whiteboards {
    boards: Arc<Mutex<HashMap<(SubagentOwner, String), Board>>>,
    limits: WhiteboardLimits,
}

struct Board {
    values: BTreeMap<String, String>,
    used: Instant,
}

/// Bytes that each value counts in addition, so that many small values are limited, too.
const VALUE_OVERHEAD: usize = 100;

/// Error of a whiteboard. A model reads the texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhiteboardError {
    /// The name of a board or a key is invalid.
    #[error("{0}: expected 1 to {MAX_NAME_LENGTH} visible characters in one line")]
    Name(&'static str),
    /// The boards are full.
    #[error(
        "Not written: whiteboards may have {0} bytes, and this value does not fit. Delete keys that are no longer needed."
    )]
    Full(usize),
}

impl Whiteboards {
    /// Creates empty whiteboards.
    #[must_use]
    pub fn new(limits: WhiteboardLimits) -> Self {
        Self { boards: Arc::default(), limits }
    }

    /// Returns the same whiteboards with other limits, which apply to what is written from now on.
    #[must_use]
    pub fn with_limits(&self, limits: WhiteboardLimits) -> Self {
        Self { boards: self.boards.clone(), limits }
    }

    /// Writes a value, replacing that of the same key.
    ///
    /// # Errors
    /// If a name is invalid, or the boards are full.
    pub fn write(
        &self,
        owner: &SubagentOwner,
        board: &str,
        key: &str,
        value: &str,
    ) -> Result<(), WhiteboardError> {
        let (board, key) = (checked("board_id", board)?, checked("key", key)?);
        let mut boards = self.boards();
        let now = Instant::now();
        boards.retain(|_, board| now.duration_since(board.used) < UNUSED_TIME);
        let replaced = boards.get(&(owner.clone(), board.to_owned())).and_then(|board| board.values.get(key));
        let freed = replaced.map_or(0, |value| value_bytes(board, key, value));
        let (mut of_owner, mut total) = (0, 0);
        for ((other, id), board) in boards.iter() {
            let bytes = board.bytes(id);
            total += bytes;
            of_owner += if other == owner { bytes } else { 0 };
        }
        let added = value_bytes(board, key, value);
        for (used, limit) in [(of_owner, self.limits.owner_bytes), (total, self.limits.total_bytes)] {
            if used - freed + added > limit {
                return Err(WhiteboardError::Full(limit));
            }
        }
        let board = boards
            .entry((owner.clone(), board.to_owned()))
            .or_insert_with(|| Board { values: BTreeMap::new(), used: now });
        board.used = now;
        board.values.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn read(&self, owner: &SubagentOwner, board: &str, key: &str) -> Option<String> {
        self.with_board(owner, board, |board| board.values.get(key.trim()).cloned()).flatten()
    }

    /// Returns the keys of a board, with the beginnings of their values.
    #[must_use]
    pub fn list(&self, owner: &SubagentOwner, board: &str) -> Vec<(String, String)> {
        let previews = self.with_board(owner, board, |board| {
            board.values.iter().map(|(key, value)| (key.clone(), preview(value))).collect()
        });
        previews.unwrap_or_default()
    }

    /// Removes a key. Returns true if there was one.
    #[must_use]
    pub fn delete(&self, owner: &SubagentOwner, board: &str, key: &str) -> bool {
        let mut boards = self.boards();
        let id = (owner.clone(), board.trim().to_owned());
        let Some(found) = boards.get_mut(&id) else { return false };
        let is_removed = found.values.remove(key.trim()).is_some();
        if found.values.is_empty() {
            boards.remove(&id);
        }
        is_removed
    }

    fn with_board<T>(&self, owner: &SubagentOwner, board: &str, act: impl FnOnce(&Board) -> T) -> Option<T> {
        let mut boards = self.boards();
        let board = boards.get_mut(&(owner.clone(), board.trim().to_owned()))?;
        board.used = Instant::now();
        Some(act(board))
    }

    fn boards(&self) -> MutexGuard<'_, HashMap<(SubagentOwner, String), Board>> {
        self.boards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    fn bytes(&self, id: &str) -> usize {
        self.values.iter().map(|(key, value)| value_bytes(id, key, value)).sum()
    }
}

/// Returns the bytes that a value counts, with its key and the id of its board.
const fn value_bytes(board: &str, key: &str, value: &str) -> usize {
    VALUE_OVERHEAD + board.len() + key.len() + value.len()
}

fn checked<'a>(name: &'static str, text: &'a str) -> Result<&'a str, WhiteboardError> {
    let text = text.trim();
    let is_legal =
        !text.is_empty() && text.chars().count() <= MAX_NAME_LENGTH && !text.contains(char::is_control);
    if is_legal { Ok(text) } else { Err(WhiteboardError::Name(name)) }
}

fn preview(value: &str) -> String {
    let line: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(PREVIEW_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::Caller;

    use super::*;

    fn owner(key: &str) -> SubagentOwner {
        SubagentOwner::of(&Caller { principal: Some(key.into()), ..Caller::default() })
    }

    fn boards() -> Whiteboards {
        Whiteboards::new(WhiteboardLimits { owner_bytes: 400, total_bytes: 602 })
    }

    #[tokio::test]
    async fn values_are_of_their_owner_and_board() {
        let (boards, a, b) = (boards(), owner("a"), owner("b"));
        boards.write(&a, "t1", " plan ", &"x".repeat(121)).unwrap();
        boards.write(&a, "t1", "done", "2\nof 3").unwrap();
        let check = |owner: &SubagentOwner, board: &str, key: &str, expected: Option<&str>| {
            assert_eq!(boards.read(owner, board, key).as_deref(), expected);
        };
        check(&a, "t1", "done", Some("2\nof 3"));
        check(&a, "t2", "done", None);
        check(&b, "t1", "done", None);
        let list: Vec<_> =
            boards.list(&a, "t1").into_iter().map(|(key, text)| format!("{key}: {text}")).collect();
        assert_eq!(list, ["done: 2 of 3".to_owned(), format!("plan: {}…", "x".repeat(120))]);
        assert!(boards.delete(&a, "t1", "plan") && !boards.delete(&a, "t1", "plan"));
    }

    #[tokio::test]
    async fn boards_are_bounded() {
        let (boards, a, b) = (boards(), owner("a"), owner("b"));
        let check =
            |owner: &SubagentOwner, key: &str, length: usize, expected: Result<(), WhiteboardError>| {
                assert_eq!(boards.write(owner, "t", key, &"x".repeat(length)), expected, "{key} {length}");
            };
        check(&a, "k", 298, Ok(()));
        // The ids of boards count, and each value 100 bytes.
        check(&a, "l", 1, Err(WhiteboardError::Full(400)));
        // The value that is replaced makes room.
        check(&a, "k", 198, Ok(()));
        check(&b, "k", 201, Err(WhiteboardError::Full(602)));
        check(&b, "k", 200, Ok(()));
        check(&b, "", 1, Err(WhiteboardError::Name("key")));
        check(&b, "a\nb", 1, Err(WhiteboardError::Name("key")));
    }

    #[tokio::test(start_paused = true)]
    async fn unused_boards_are_removed() {
        let (boards, a) = (boards(), owner("a"));
        boards.write(&a, "old", "k", "v").unwrap();
        tokio::time::advance(UNUSED_TIME).await;
        boards.write(&a, "new", "k", "v").unwrap();
        assert_eq!((boards.read(&a, "old", "k"), boards.read(&a, "new", "k").as_deref()), (None, Some("v")));
    }
}
