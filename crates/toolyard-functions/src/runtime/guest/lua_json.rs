//! JSON in Lua. Arrays have a metatable, so that an empty one differs from an empty object, and `null` is a special
//! value, because tables cannot contain nil.

use std::fmt;

use mlua::{Lua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Maximum depth of values, as for parsed JSON.
const MAX_DEPTH: usize = 128;

/// Error of writing a value as JSON.
#[derive(Debug)]
pub(super) enum JsonEncodeError {
    TooLarge,
    What(String),
}

/// Decodes a text. Out of memory is an error of category [`Data`](serde_json::error::Category::Data).
pub(super) fn decode(lua: &Lua, array: &Table, text: &[u8]) -> serde_json::Result<Value> {
    remove_finalizer(array).map_err(serde_json::Error::custom)?;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = LuaValueSeed { lua, array }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Removes `__gc` from a table that becomes a metatable. Handlers can modify such tables.
pub(super) fn remove_finalizer(of: &Table) -> mlua::Result<()> {
    of.raw_set("__gc", Value::Nil)
}

/// Encodes a value as JSON with at most `limit` bytes. Members are sorted by name, because the order in a table differs
/// between states.
pub(super) fn encode(array: &Table, value: &Value, limit: usize) -> Result<Vec<u8>, JsonEncodeError> {
    let mut writer = LuaJsonWriter { array, limit, out: Vec::new() };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct LuaJsonWriter<'a> {
    array: &'a Table,
    limit: usize,
    out: Vec<u8>,
}

impl LuaJsonWriter<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), JsonEncodeError> {
        if depth > MAX_DEPTH {
            return Err(JsonEncodeError::What("nested too deeply, or cyclic".to_owned()));
        }
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            value if *value == Value::NULL => self.out.extend_from_slice(b"null"),
            Value::Boolean(is) => self.out.extend_from_slice(if *is { b"true" } else { b"false" }),
            Value::Integer(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
            Value::Number(number) if number.is_finite() => self.plain(number)?,
            Value::Number(number) => {
                return Err(JsonEncodeError::What(format!("{number} is not a JSON number")));
            }
            Value::String(text) => match text.to_str() {
                Ok(text) => self.plain(&*text)?,
                Err(_) => return Err(JsonEncodeError::What("a string is not UTF-8".to_owned())),
            },
            Value::Table(table) => self.table(table, depth)?,
            other => {
                return Err(JsonEncodeError::What(format!("a {} is not a JSON value", other.type_name())));
            }
        }
        if self.out.len() > self.limit { Err(JsonEncodeError::TooLarge) } else { Ok(()) }
    }

    fn plain(&mut self, value: &(impl serde::Serialize + ?Sized)) -> Result<(), JsonEncodeError> {
        serde_json::to_writer(&mut self.out, value).map_err(|error| JsonEncodeError::What(error.to_string()))
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), JsonEncodeError> {
        let length = table.raw_len();
        let mut members = Vec::new();
        let mut is_list = true;
        let collected = table.for_each(|key: Value, value: Value| {
            is_list &= matches!(key, Value::Integer(index) if index >= 1 && usize::try_from(index).is_ok_and(|index| index <= length));
            members.push((key, value));
            Ok(())
        });
        collected.map_err(|error| JsonEncodeError::What(error.to_string()))?;
        let is_marked = table.metatable().is_some_and(|of| of == *self.array);
        if is_marked || (is_list && length > 0) {
            drop(members);
            return self.list(table, length, depth);
        }
        self.object(members, depth)
    }

    fn list(&mut self, table: &Table, length: usize, depth: usize) -> Result<(), JsonEncodeError> {
        self.out.push(b'[');
        for index in 1..=length {
            if index > 1 {
                self.out.push(b',');
            }
            let item = table.raw_get(index).map_err(|error| JsonEncodeError::What(error.to_string()))?;
            self.value(&item, depth + 1)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, members: Vec<(Value, Value)>, depth: usize) -> Result<(), JsonEncodeError> {
        let mut named = Vec::with_capacity(members.len());
        for (key, value) in members {
            named.push((name(&key)?, value));
        }
        named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if let Some(twice) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(JsonEncodeError::What(format!("duplicate member {}", twice[0].0)));
        }
        self.out.push(b'{');
        for (number, (name, value)) in named.iter().enumerate() {
            if number > 0 {
                self.out.push(b',');
            }
            self.plain(name)?;
            self.out.push(b':');
            self.value(value, depth + 1)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

fn name(key: &Value) -> Result<String, JsonEncodeError> {
    match key {
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(JsonEncodeError::What("a name is not UTF-8".to_owned())),
        },
        Value::Integer(number) => Ok(number.to_string()),
        other => Err(JsonEncodeError::What(format!("a {} is not a JSON member name", other.type_name()))),
    }
}

#[derive(Clone, Copy)]
struct LuaValueSeed<'a> {
    lua: &'a Lua,
    array: &'a Table,
}

impl<'de> DeserializeSeed<'de> for LuaValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LuaValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Value, E> {
        Ok(Value::Boolean(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        // Lua has no larger integers.
        Ok(i64::try_from(number).map_or(Value::Number(number as f64), Value::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.lua.create_string(text).map(Value::String).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(item) = items.next_element_seed(self)? {
            table.raw_push(item).map_err(A::Error::custom)?;
        }
        table.set_metatable(Some(self.array.clone())).map_err(A::Error::custom)?;
        Ok(Value::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(name) = members.next_key_seed(self)? {
            let value = members.next_value_seed(self)?;
            table.raw_set(name, value).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(table))
    }
}
