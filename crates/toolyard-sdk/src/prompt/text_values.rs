//! Deserialization of strings: in MCP the arguments of prompts and the variables of templates are strings, whatever
//! type a handler takes.

use std::fmt::Display;
use std::str::FromStr;
use std::vec;

use serde::de::value::{Error, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toolyard_core::{Call, ErrorCode, Json, ToolError};

/// The error for required arguments that are missing.
pub(super) fn missing(call: &Call, required: &[String]) -> Option<ToolError> {
    let arguments = call.arguments().and_then(|arguments| arguments.to_object().ok()).unwrap_or_default();
    let missing = |name: &&String| arguments.get(name).is_none_or(Json::is_null);
    let names: Vec<_> = required.iter().filter(missing).map(|name| format!("`{name}`")).collect();
    let s = if names.len() == 1 { "" } else { "s" };
    (!names.is_empty()).then(|| invalid(format!("Missing required argument{s}: {}", names.join(", "))))
}

/// Deserializes the arguments of a call.
pub(super) fn arguments<A: DeserializeOwned>(call: &Call) -> Result<A, ToolError> {
    let values = match call.arguments().map(Json::to_object).transpose() {
        Ok(values) => values.unwrap_or_default(),
        Err(error) => return Err(invalid(format!("Invalid arguments: {}", error.problem))),
    };
    // Some clients send a number or a boolean instead of a string.
    let text = |value: &Json| value.to_str().unwrap_or_else(|| value.as_text().into()).into_owned();
    let values = values.iter().filter(|(_, value)| !value.is_null());
    let texts = values.map(|(name, value)| (name.into_owned(), text(value))).collect();
    read(texts).map_err(|error| invalid(format!("Invalid arguments: {error}")))
}

fn invalid(message: String) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, message)
}

/// Deserializes named strings. A struct or map takes them by name, a tuple by position, and a number, a string or
/// another scalar takes the only one.
///
/// # Errors
/// If a value does not fit, which the error names, or is missing.
pub(crate) fn read<T: DeserializeOwned>(texts: Vec<(String, String)>) -> Result<T, Error> {
    T::deserialize(NamedTexts(texts))
}

struct NamedTexts(Vec<(String, String)>);

impl NamedTexts {
    fn only(self) -> Result<TextValue, Error> {
        let count = self.0.len();
        match <[_; 1]>::try_from(self.0) {
            Ok([(_, text)]) => Ok(TextValue(text)),
            Err(_) => Err(Error::custom(format!("expected one value, found {count}"))),
        }
    }
}

/// Forwards these methods to the only value.
macro_rules! forward_to_only_text {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.only()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for NamedTexts {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(TextMembers { left: self.0.into_iter(), value: None })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(self.0.into_iter().map(|(_, text)| TextValue(text))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    forward_to_only_text! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf
    }

    forward_to_deserialize_any! { map struct identifier ignored_any }
}

/// Names and strings as the members of a struct or map.
struct TextMembers {
    left: vec::IntoIter<(String, String)>,
    value: Option<(String, String)>,
}

impl<'de> MapAccess<'de> for TextMembers {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.value = self.left.next();
        let Some((name, _)) = &self.value else { return Ok(None) };
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, text) = self.value.take().ok_or_else(|| Error::custom("a value precedes its name"))?;
        seed.deserialize(TextValue(text)).map_err(|error| Error::custom(format!("`{name}`: {error}")))
    }
}

/// One string, deserialized as the type that is requested.
struct TextValue(String);

impl TextValue {
    fn parse<T: FromStr>(&self, expected: &str) -> Result<T, Error>
    where
        T::Err: Display,
    {
        self.0.trim().parse().map_err(|error| Error::custom(format!("not {expected}: {error}")))
    }
}

impl IntoDeserializer<'_, Error> for TextValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Parses these types from the string.
macro_rules! parse_from_text {
    ($($method:ident $visit:ident $what:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parse($what)?)
        }
    )*};
}

/// Parses these types from the string as JSON.
macro_rules! parse_from_json {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Error> {
            let mut json = serde_json::Deserializer::from_reader(self.0.as_bytes());
            let value = (&mut json).$method($($argument,)* visitor).map_err(Error::custom)?;
            json.end().map_err(Error::custom)?;
            Ok(value)
        }
    )*};
}

impl<'de> Deserializer<'de> for TextValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    /// An empty string stands for a field that was not filled in.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        IntoDeserializer::<Error>::into_deserializer(self.0).deserialize_enum(name, variants, visitor)
    }

    parse_from_text! {
        deserialize_bool visit_bool "true or false",
        deserialize_i8 visit_i8 "a whole number",
        deserialize_i16 visit_i16 "a whole number",
        deserialize_i32 visit_i32 "a whole number",
        deserialize_i64 visit_i64 "a whole number",
        deserialize_i128 visit_i128 "a whole number",
        deserialize_u8 visit_u8 "a whole number",
        deserialize_u16 visit_u16 "a whole number",
        deserialize_u32 visit_u32 "a whole number",
        deserialize_u64 visit_u64 "a whole number",
        deserialize_u128 visit_u128 "a whole number",
        deserialize_f32 visit_f32 "a number",
        deserialize_f64 visit_f64 "a number",
    }

    parse_from_json! {
        deserialize_seq()
        deserialize_map()
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct All {
        text: String,
        count: Option<u8>,
        below: i64,
        share: f64,
        deep: bool,
        size: Option<Size>,
        letter: Option<char>,
        wrapped: Wrapped,
        list: Vec<i32>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Wrapped(u32);

    #[track_caller]
    fn check<T: DeserializeOwned + Debug + PartialEq>(texts: &[(&str, &str)], expected: Result<T, &str>) {
        let texts = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(read(texts).map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn struct_takes_values_by_name() {
        let texts = [("text", "a"), ("count", "7"), ("below", "-3"), ("share", "0.5"), ("deep", "true")];
        check(
            &texts,
            Ok(All { text: "a".into(), count: Some(7), below: -3, share: 0.5, deep: true, ..All::default() }),
        );
        check(&[("size", "large"), ("other", "x")], Ok(All { size: Some(Size::Large), ..All::default() }));
        check(&[("size", ""), ("count", "")], Ok(All::default()));
        check(
            &[("letter", "ß"), ("wrapped", "12")],
            Ok(All { letter: Some('ß'), wrapped: Wrapped(12), ..All::default() }),
        );
        check(
            &[("list", "[1, 2]"), ("text", "5")],
            Ok(All { list: vec![1, 2], text: "5".into(), ..All::default() }),
        );
    }

    #[test]
    fn error_names_the_value_that_does_not_fit() {
        check::<All>(&[("count", "many")], Err("`count`: not a whole number: invalid digit found in string"));
        check::<All>(
            &[("count", "256")],
            Err("`count`: not a whole number: number too large to fit in target type"),
        );
        check::<All>(
            &[("deep", "yes")],
            Err("`deep`: not true or false: provided string was not `true` or `false`"),
        );
        check::<All>(&[("size", "huge")], Err("`size`: unknown variant `huge`, expected `small` or `large`"));
        check::<All>(&[("list", "[1] 2")], Err("`list`: trailing characters at line 1 column 5"));
    }

    #[test]
    fn other_types_take_values_by_shape() {
        let pair = [("a", "1"), ("b", "x")];
        let map = [("a", "1"), ("b", "x")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        check(&pair, Ok(BTreeMap::from(map)));
        check(&pair, Ok((1_u8, "x".to_owned())));
        check(&pair[..1], Ok(1_u64));
        check(&pair[..1], Ok(Wrapped(1)));
        check(&pair[..1], Ok("1".to_owned()));
        check(&pair[..1], Ok(Some("1".to_owned())));
        check(&pair, Ok(()));
        check::<String>(&pair, Err("expected one value, found 2"));
        check::<u8>(&[], Err("expected one value, found 0"));
        check(&[], Ok(None::<u8>));
        check(&pair, Ok(vec!["1".to_owned(), "x".to_owned()]));
    }
}
