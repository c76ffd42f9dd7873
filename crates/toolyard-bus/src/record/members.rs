//! The members of records as JSON. Their names are written in camel case and read in any case; unknown members are
//! ignored, and `null` counts as absent.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// Reason why an object is not such a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// A required member is missing.
    #[error("`{0}` is required")]
    Missing(&'static str),
    /// The member is not a string.
    #[error("`{0}` must be a string")]
    NotText(&'static str),
    /// The member is not a boolean.
    #[error("`{0}` must be a boolean")]
    NotFlag(&'static str),
    /// The member is not a whole number within bounds.
    #[error("`{0}` must be a whole number")]
    NotNumber(&'static str),
    /// The member is not a list of strings.
    #[error("`{0}` must be a list of strings")]
    NotTexts(&'static str),
    /// The member is not an object of strings.
    #[error("`{0}` must be an object of strings")]
    NotTextMap(&'static str),
    /// The member is not a list of objects.
    #[error("`{0}` must be a list of objects")]
    NotRecords(&'static str),
    /// The member is not an object.
    #[error("`{0}` must be an object")]
    NotRecord(&'static str),
    /// The member is none of the values of an enumeration.
    #[error("`{0}` has an unknown value")]
    Unknown(&'static str),
}

/// The members of an object by their names in lower case. A duplicate name in any case is refused, because two readers
/// could use different values.
pub(crate) struct RecordMembers(BTreeMap<String, Value>);

impl RecordMembers {
    pub(crate) fn text(&mut self, name: &'static str) -> Result<String, BadRecord> {
        self.optional(name)?.ok_or(BadRecord::Missing(name))
    }

    pub(crate) fn optional(&mut self, name: &'static str) -> Result<Option<String>, BadRecord> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(BadRecord::NotText(name)),
        }
    }

    /// Returns a string; an empty one if it is absent.
    pub(crate) fn text_or_empty(&mut self, name: &'static str) -> Result<String, BadRecord> {
        self.optional(name).map(Option::unwrap_or_default)
    }

    /// Returns a boolean; `false` if it is absent.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, BadRecord> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(BadRecord::NotFlag(name)),
        }
    }

    /// Returns a whole number; 0 if it is absent.
    pub(crate) fn number(&mut self, name: &'static str) -> Result<i64, BadRecord> {
        match self.take(name) {
            None => Ok(0),
            Some(number) => number.as_i64().ok_or(BadRecord::NotNumber(name)),
        }
    }

    /// Returns a list of strings; an empty one if it is absent.
    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, BadRecord> {
        let Some(list) = self.take(name) else { return Ok(Vec::new()) };
        serde_json::from_value(list).map_err(|_| BadRecord::NotTexts(name))
    }

    /// Returns an object of strings; an empty one if it is absent.
    pub(crate) fn text_map(&mut self, name: &'static str) -> Result<BTreeMap<String, String>, BadRecord> {
        let Some(object) = self.take(name) else { return Ok(BTreeMap::new()) };
        serde_json::from_value(object).map_err(|_| BadRecord::NotTextMap(name))
    }

    /// Returns a list of records; an empty one if it is absent.
    pub(crate) fn records<T>(&mut self, name: &'static str) -> Result<Vec<T>, BadRecord>
    where
        T: TryFrom<Self, Error = BadRecord>,
    {
        let Some(list) = self.take(name) else { return Ok(Vec::new()) };
        let items: Vec<Self> = serde_json::from_value(list).map_err(|_| BadRecord::NotRecords(name))?;
        items.into_iter().map(T::try_from).collect()
    }

    /// Returns a record; `None` if it is absent.
    pub(crate) fn record<T>(&mut self, name: &'static str) -> Result<Option<T>, BadRecord>
    where
        T: TryFrom<Self, Error = BadRecord>,
    {
        let Some(object) = self.take(name) else { return Ok(None) };
        let members: Self = serde_json::from_value(object).map_err(|_| BadRecord::NotRecord(name))?;
        T::try_from(members).map(Some)
    }

    /// Returns the position of a value of an enumeration, of which .NET writes the number or, if it is told to, the name;
    /// `None` if it is absent.
    pub(crate) fn one_of(&mut self, name: &'static str, names: &[&str]) -> Result<Option<usize>, BadRecord> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let position = match &value {
            Value::String(word) => names.iter().position(|name| name.eq_ignore_ascii_case(word)),
            value => value.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        position.filter(|at| *at < names.len()).map(Some).ok_or(BadRecord::Unknown(name))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(&name.to_ascii_lowercase()).filter(|value| !value.is_null())
    }
}

impl<'de> Deserialize<'de> for RecordMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordMembersVisitor)
    }
}

struct RecordMembersVisitor;

impl<'de> Visitor<'de> for RecordMembersVisitor {
    type Value = RecordMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<RecordMembers, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = object.next_entry::<String, Value>()? {
            if members.insert(name.to_ascii_lowercase(), value).is_some() {
                return Err(serde::de::Error::custom("duplicate member"));
            }
        }
        Ok(RecordMembers(members))
    }
}
