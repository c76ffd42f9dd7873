//! JSON in Lua. An array stays one by its metatable, so that an empty one is not taken for an empty object, and `null`
//! is a value of its own, because a table cannot hold nil.

use std::fmt;

use mlua::{Lua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// How deep values may nest: as deep as those that come in.
const MAX_DEPTH: usize = 128;

/// Why a value cannot be written as JSON.
#[derive(Debug)]
pub(super) enum NoJson {
    TooLarge,
    What(String),
}

/// Reads a text into Lua. It is an error of [`Data`](serde_json::error::Category::Data) where there is no memory for it.
pub(super) fn decode(lua: &Lua, array: &Table, text: &[u8]) -> serde_json::Result<Value> {
    unfinalized(array).map_err(serde_json::Error::custom)?;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Seed { lua, array }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Takes what would run when a value goes out of a table that becomes its metatable. Handlers can reach each of them.
pub(super) fn unfinalized(of: &Table) -> mlua::Result<()> {
    of.raw_set("__gc", Value::Nil)
}

/// Writes a value as JSON, of `limit` bytes at most. Members come in the order of their names: the order in a table
/// is another one in each state.
pub(super) fn encode(array: &Table, value: &Value, limit: usize) -> Result<Vec<u8>, NoJson> {
    let mut writer = Writer { array, limit, out: Vec::new() };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'a> {
    array: &'a Table,
    limit: usize,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), NoJson> {
        if depth > MAX_DEPTH {
            return Err(NoJson::What("it nests too deep, or contains itself".to_owned()));
        }
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            value if *value == Value::NULL => self.out.extend_from_slice(b"null"),
            Value::Boolean(is) => self.out.extend_from_slice(if *is { b"true" } else { b"false" }),
            Value::Integer(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
            Value::Number(number) if number.is_finite() => self.plain(number)?,
            Value::Number(number) => return Err(NoJson::What(format!("{number} is no number in JSON"))),
            Value::String(text) => match text.to_str() {
                Ok(text) => self.plain(&*text)?,
                Err(_) => return Err(NoJson::What("a string is not UTF-8".to_owned())),
            },
            Value::Table(table) => self.table(table, depth)?,
            other => return Err(NoJson::What(format!("a {} is no value in JSON", other.type_name()))),
        }
        if self.out.len() > self.limit { Err(NoJson::TooLarge) } else { Ok(()) }
    }

    fn plain(&mut self, value: &(impl serde::Serialize + ?Sized)) -> Result<(), NoJson> {
        serde_json::to_writer(&mut self.out, value).map_err(|error| NoJson::What(error.to_string()))
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), NoJson> {
        let length = table.raw_len();
        let mut members = Vec::new();
        let mut is_list = true;
        let collected = table.for_each(|key: Value, value: Value| {
            is_list &= matches!(key, Value::Integer(index) if index >= 1 && usize::try_from(index).is_ok_and(|index| index <= length));
            members.push((key, value));
            Ok(())
        });
        collected.map_err(|error| NoJson::What(error.to_string()))?;
        let is_marked = table.metatable().is_some_and(|of| of == *self.array);
        if is_marked || (is_list && length > 0) {
            drop(members);
            return self.list(table, length, depth);
        }
        self.object(members, depth)
    }

    fn list(&mut self, table: &Table, length: usize, depth: usize) -> Result<(), NoJson> {
        self.out.push(b'[');
        for index in 1..=length {
            if index > 1 {
                self.out.push(b',');
            }
            let item = table.raw_get(index).map_err(|error| NoJson::What(error.to_string()))?;
            self.value(&item, depth + 1)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, members: Vec<(Value, Value)>, depth: usize) -> Result<(), NoJson> {
        let mut named = Vec::with_capacity(members.len());
        for (key, value) in members {
            named.push((name(&key)?, value));
        }
        named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if let Some(twice) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(NoJson::What(format!("two members have the name {}", twice[0].0)));
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

fn name(key: &Value) -> Result<String, NoJson> {
    match key {
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(NoJson::What("a name is not UTF-8".to_owned())),
        },
        Value::Integer(number) => Ok(number.to_string()),
        other => Err(NoJson::What(format!("a {} is no name in JSON", other.type_name()))),
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    lua: &'a Lua,
    array: &'a Table,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
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
        // The nearest there is in Lua.
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
