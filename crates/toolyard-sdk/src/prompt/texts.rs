//! Values out of texts: on the wire the arguments of prompts and the variables of templates are texts, whatever a
//! handler takes them for.

use std::fmt::Display;
use std::str::FromStr;
use std::vec;

use serde::de::value::{Error, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toolyard_core::{Call, Code, Json, ToolError};

/// A required argument that is not there, as an error.
pub(super) fn missing(call: &Call, required: &[String]) -> Option<ToolError> {
    let given = call.arguments().and_then(|arguments| arguments.to_object().ok()).unwrap_or_default();
    let missing = |name: &&String| given.get(name).is_none_or(Json::is_null);
    let names: Vec<_> = required.iter().filter(missing).map(|name| format!("`{name}`")).collect();
    let s = if names.len() == 1 { "" } else { "s" };
    (!names.is_empty()).then(|| invalid(format!("Missing required argument{s}: {}", names.join(", "))))
}

/// The arguments of a call.
pub(super) fn arguments<A: DeserializeOwned>(call: &Call) -> Result<A, ToolError> {
    let given = match call.arguments().map(Json::to_object).transpose() {
        Ok(given) => given.unwrap_or_default(),
        Err(error) => return Err(invalid(format!("Invalid arguments: {}", error.problem))),
    };
    // Clients may send a number or a boolean where they should send its text.
    let text = |value: &Json| value.to_str().unwrap_or_else(|| value.as_text().into()).into_owned();
    let given = given.iter().filter(|(_, value)| !value.is_null());
    let texts = given.map(|(name, value)| (name.into_owned(), text(value))).collect();
    read(texts).map_err(|error| invalid(format!("Invalid arguments: {error}")))
}

fn invalid(message: String) -> ToolError {
    ToolError::new(Code::InvalidArguments, message)
}

/// A value of named texts. A struct or map takes them by their names, a tuple in their order, and a number, text or
/// the like takes the only one.
///
/// # Errors
/// When one does not fit, which is named, or is not there.
pub(crate) fn read<T: DeserializeOwned>(texts: Vec<(String, String)>) -> Result<T, Error> {
    T::deserialize(Texts(texts))
}

struct Texts(Vec<(String, String)>);

impl Texts {
    fn only(self) -> Result<Text, Error> {
        let count = self.0.len();
        match <[_; 1]>::try_from(self.0) {
            Ok([(_, text)]) => Ok(Text(text)),
            Err(_) => Err(Error::custom(format!("there are {count} values where one is expected"))),
        }
    }
}

/// Hands these on to the only text.
macro_rules! of_the_only_text {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.only()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Texts {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Members { left: self.0.into_iter(), value: None })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(self.0.into_iter().map(|(_, text)| Text(text))))
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

    of_the_only_text! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf
    }

    forward_to_deserialize_any! { map struct identifier ignored_any }
}

/// Names and texts as the members of a struct or map.
struct Members {
    left: vec::IntoIter<(String, String)>,
    value: Option<(String, String)>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.value = self.left.next();
        let Some((name, _)) = &self.value else { return Ok(None) };
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, text) = self.value.take().ok_or_else(|| Error::custom("a value comes before its name"))?;
        seed.deserialize(Text(text)).map_err(|error| Error::custom(format!("`{name}`: {error}")))
    }
}

/// One text, as whatever it is taken for.
struct Text(String);

impl Text {
    fn parse<T: FromStr>(&self, what: &str) -> Result<T, Error>
    where
        T::Err: Display,
    {
        self.0.trim().parse().map_err(|error| Error::custom(format!("not {what}: {error}")))
    }
}

impl IntoDeserializer<'_, Error> for Text {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads these out of the text.
macro_rules! out_of_text {
    ($($method:ident $visit:ident $what:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parse($what)?)
        }
    )*};
}

/// Reads these out of the text as JSON.
macro_rules! out_of_json {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Error> {
            let mut json = serde_json::Deserializer::from_reader(self.0.as_bytes());
            let value = (&mut json).$method($($argument,)* visitor).map_err(Error::custom)?;
            json.end().map_err(Error::custom)?;
            Ok(value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Text {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    /// A form that was not filled in has an empty text.
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

    out_of_text! {
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

    out_of_json! {
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
    fn a_struct_takes_texts_by_name() {
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
    fn a_text_that_does_not_fit_is_named() {
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
    fn other_types_take_what_there_is() {
        let pair = [("a", "1"), ("b", "x")];
        let map = [("a", "1"), ("b", "x")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        check(&pair, Ok(BTreeMap::from(map)));
        check(&pair, Ok((1_u8, "x".to_owned())));
        check(&pair[..1], Ok(1_u64));
        check(&pair[..1], Ok(Wrapped(1)));
        check(&pair[..1], Ok("1".to_owned()));
        check(&pair[..1], Ok(Some("1".to_owned())));
        check(&pair, Ok(()));
        check::<String>(&pair, Err("there are 2 values where one is expected"));
        check::<u8>(&[], Err("there are 0 values where one is expected"));
        check(&[], Ok(None::<u8>));
        check(&pair, Ok(vec!["1".to_owned(), "x".to_owned()]));
    }
}
