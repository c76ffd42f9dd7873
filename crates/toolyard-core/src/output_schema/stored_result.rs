//! The reference that replaces a structured result which is too large for a model.

use crate::json::{Json, Object};

/// The member that distinguishes a reference from a result.
pub(super) const MEMBER: &str = "storedResult";

/// A reference to a result that is too large for a model, as structured content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult<'a> {
    /// Key of the result in working memory, and number of its chunks. `None` if the result was truncated.
    pub stored: Option<(&'a str, usize)>,
    /// Length of the result in characters.
    pub chars: usize,
    /// Instructions for reading the result, or the reason why it was truncated.
    pub note: &'a str,
}

impl StoredResult<'_> {
    /// Returns the reference as structured content.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut reference = Object::new();
        if let Some((key, chunks)) = self.stored {
            reference.set("key", Json::string(key));
            reference.set("chunks", Json::unsigned(chunks as u64));
        }
        reference.set("chars", Json::unsigned(self.chars as u64));
        reference.set("note", Json::string(self.note));
        Object::new().with(MEMBER, reference.to_json()).to_json()
    }

    /// Returns the schema of references.
    pub(super) fn schema() -> Json {
        let properties = Object::new().with(MEMBER, Self::member_schema());
        typed("object").with("properties", properties.to_json()).with("required", list(MEMBER)).to_json()
    }

    /// Returns the schema of the member.
    pub(super) fn member_schema() -> Json {
        let members = [("key", "string"), ("chunks", "integer"), ("chars", "integer"), ("note", "string")];
        let members = members.into_iter();
        let members = members.fold(Object::new(), |all, (name, kind)| all.with(name, typed(kind).to_json()));
        typed("object").with("properties", members.to_json()).with("required", list("note")).to_json()
    }
}

fn typed(name: &str) -> Object {
    Object::new().with("type", Json::string(name))
}

fn list(name: &str) -> Json {
    Json::array([&Json::string(name)])
}
