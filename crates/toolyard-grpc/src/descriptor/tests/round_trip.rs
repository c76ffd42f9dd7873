//! Property tests: random values of random types of the sample, compared with another implementation (`prost-reflect`).

use std::sync::LazyLock;

use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Map, Value, json};

use super::corpus::sample;
use crate::descriptor::types::{Cardinality, FieldKind, MessageField, TypePool, WellKnown};
use crate::descriptor::{MethodFilter, MethodTool, ServiceTools};

static TOOLS: LazyLock<Option<(Vec<MethodTool>, DescriptorPool)>> = LazyLock::new(|| {
    let sample = sample()?;
    let tools = ServiceTools::from_file_descriptor_set(&sample, &MethodFilter::default()).unwrap();
    Some((tools.methods().to_vec(), DescriptorPool::decode(sample.as_slice()).unwrap()))
});

/// Random choices, which end with its bytes.
struct Tape<'t>(&'t [u8]);

impl Tape<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn flag(&mut self) -> bool {
        self.next() & 1 == 0
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.next()))
    }

    fn text(&mut self) -> String {
        let alphabet = ['a', 'Z', '0', ' ', '"', '\\', '\n', '\u{0}', '\u{e4}', '\u{1f600}', '/', '_'];
        (0..self.next() % 6).map(|_| alphabet[usize::from(self.next()) % alphabet.len()]).collect()
    }
}

/// Makes values in the form that results have.
struct Maker<'p> {
    pool: &'p TypePool,
}

impl Maker<'_> {
    fn message(&self, message: u32, tape: &mut Tape<'_>, depth: usize) -> Value {
        let message = self.pool.message(message);
        if let Some(known) = message.known {
            return self.known(known, tape, depth);
        }
        let mut members = Map::new();
        let mut oneofs = vec![false; message.oneofs.len()];
        let count = if depth > 5 || message.fields.is_empty() { 0 } else { tape.next() % 6 };
        for _ in 0..count {
            let field = &message.fields[usize::from(tape.next()) % message.fields.len()];
            if let Some(oneof) = field.oneof
                && std::mem::replace(&mut oneofs[oneof as usize], true)
            {
                continue;
            }
            let value = match field.cardinality {
                Cardinality::Single => self.value(field.kind, tape, depth),
                Cardinality::Repeated => {
                    (0..tape.next() % 4).map(|_| self.value(field.kind, tape, depth)).collect()
                }
                Cardinality::Map(key) => {
                    let entries = (0..tape.next() % 4)
                        .map(|_| (Self::key(key, tape), self.value(field.kind, tape, depth)));
                    Value::Object(entries.collect())
                }
            };
            members.insert(field.json_name.to_string(), value);
        }
        for field in message.fields.iter().filter(|field| depth == 0 && field.must_be_sent) {
            let is_list = matches!(field.cardinality, Cardinality::Repeated);
            let empty = if is_list { json!([]) } else { json!({}) };
            let value = match field.cardinality {
                Cardinality::Single => self.value(field.kind, tape, depth),
                _ => empty,
            };
            members.entry(field.json_name.to_string()).or_insert(value);
        }
        Value::Object(members)
    }

    fn known(&self, known: WellKnown, tape: &mut Tape<'_>, depth: usize) -> Value {
        match known {
            WellKnown::Any => {
                let message = usize::from(tape.next()) * 256 + usize::from(tape.next());
                let message = message % self.pool.messages.len();
                let (name, known) =
                    (&self.pool.messages[message].full_name, self.pool.messages[message].known);
                let value = if depth > 3 { json!({}) } else { self.message(message as u32, tape, depth + 1) };
                let url = Value::from(format!("type.googleapis.com/{name}"));
                match (known, value) {
                    (None, Value::Object(mut members)) => {
                        members.insert("@type".to_owned(), url);
                        Value::Object(members)
                    }
                    // The other implementation differs for empty messages and values deep inside.
                    (Some(WellKnown::Empty | WellKnown::Any), _) => {
                        json!({"@type": "a/google.protobuf.Duration", "value": "0s"})
                    }
                    (_, _) if depth > 3 => json!({"@type": "a/google.protobuf.Duration", "value": "0s"}),
                    (_, value) => json!({"@type": url, "value": value}),
                }
            }
            WellKnown::Timestamp => {
                let range = (-62_135_596_800_i64, 253_402_300_799_i64);
                let seconds = range.0 + (tape.number() % (range.1 - range.0) as u64) as i64;
                let nanos = [0, 1, 1_000, 500_000_000, 999_999_999][usize::from(tape.next()) % 5];
                crate::descriptor::time::format_timestamp(seconds, nanos).unwrap().into()
            }
            WellKnown::Duration => {
                let seconds = (tape.number() % 315_576_000_000) as i64;
                let nanos = [0, 1, 1_000, 500_000_000, 999_999_999][usize::from(tape.next()) % 5];
                let sign = if tape.flag() { 1 } else { -1 };
                crate::descriptor::time::format_duration(sign * seconds, sign * nanos).unwrap().into()
            }
            WellKnown::FieldMask => ["", "a", "fooBar.baz,h"][usize::from(tape.next()) % 3].into(),
            WellKnown::Struct => Value::Object(
                (0..tape.next() % 3).map(|_| (tape.text(), Self::any_json(tape, depth))).collect(),
            ),
            WellKnown::ListValue => (0..tape.next() % 3).map(|_| Self::any_json(tape, depth)).collect(),
            WellKnown::Value => Self::any_json(tape, depth),
            // The other implementation writes `null` for numbers that are not finite.
            WellKnown::Wrapper(FieldKind::Double | FieldKind::Float) => json!(f64::from(tape.next()) / 4.0),
            WellKnown::Wrapper(kind) => self.value(kind, tape, depth),
            WellKnown::Empty => json!({}),
        }
    }

    fn any_json(tape: &mut Tape<'_>, depth: usize) -> Value {
        match tape.next() % 6 {
            0 => Value::Null,
            1 => tape.flag().into(),
            2 => json!(f64::from(tape.next()) / 8.0),
            3 if depth < 4 => (0..tape.next() % 3).map(|_| Self::any_json(tape, depth + 1)).collect(),
            4 if depth < 4 => Value::Object(
                (0..tape.next() % 3).map(|_| (tape.text(), Self::any_json(tape, depth + 1))).collect(),
            ),
            _ => tape.text().into(),
        }
    }

    fn value(&self, kind: FieldKind, tape: &mut Tape<'_>, depth: usize) -> Value {
        match kind {
            FieldKind::Message(message) | FieldKind::Group(message) => self.message(message, tape, depth + 1),
            FieldKind::Enum(enumeration) => {
                let enumeration = self.pool.enumeration(enumeration);
                match enumeration.values.get(usize::from(tape.next()) % (enumeration.values.len() + 1)) {
                    _ if enumeration.is_null => Value::Null,
                    Some(value) => enumeration.name(value.number).unwrap().into(),
                    None if enumeration.is_closed => (*enumeration.values[0].name).into(),
                    None => 12_345.into(),
                }
            }
            FieldKind::Double => match tape.next() % 5 {
                0 => "NaN".into(),
                1 => "-Infinity".into(),
                _ => json!(
                    Some(f64::from_bits(tape.number())).filter(|number| number.is_finite()).unwrap_or(1.5)
                ),
            },
            FieldKind::Float => match tape.next() % 5 {
                0 => "NaN".into(),
                1 => "Infinity".into(),
                _ => {
                    let number =
                        Some(f32::from_bits(tape.number() as u32)).filter(|number| number.is_finite());
                    serde_json::from_str(&format!("{:?}", number.unwrap_or(1.5))).unwrap()
                }
            },
            FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => (tape.number() as i32).into(),
            FieldKind::Uint32 | FieldKind::Fixed32 => (tape.number() as u32).into(),
            FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => {
                (tape.number() as i64).to_string().into()
            }
            FieldKind::Uint64 | FieldKind::Fixed64 => tape.number().to_string().into(),
            FieldKind::Bool => tape.flag().into(),
            FieldKind::Text => tape.text().into(),
            FieldKind::Bytes => ["", "AA==", "AAE=", "/+8A"][usize::from(tape.next()) % 4].into(),
        }
    }

    fn key(kind: FieldKind, tape: &mut Tape<'_>) -> String {
        match kind {
            FieldKind::Text => tape.text(),
            FieldKind::Bool => tape.flag().to_string(),
            FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => (tape.number() as i32).to_string(),
            FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => (tape.number() as i64).to_string(),
            FieldKind::Uint32 | FieldKind::Fixed32 => (tape.number() as u32).to_string(),
            _ => tape.number().to_string(),
        }
    }
}

/// Returns true for values that are equal but for the texts of their numbers: a float has several shortest ones.
fn are_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            one == other || one as f32 == other as f32
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_same =
                |(name, one): (&String, &Value)| other.get(name).is_some_and(|other| are_same(one, other));
            one.len() == other.len() && one.iter().all(is_same)
        }
        (one, other) => one == other,
    }
}

/// Sends a random value of a message type there and back, and compares each step.
fn check(method: &MethodTool, pool: &DescriptorPool, tape: &[u8]) {
    let mut method = method.clone();
    // The request is also the response.
    method.output = method.input;
    let message = method.types.message(method.input);
    if message.known.is_some_and(|known| !known.is_object()) {
        return;
    }
    let text = Maker { pool: &method.types }.message(method.input, &mut Tape(tape), 0).to_string();
    let bytes = method.encode(&text).unwrap_or_else(|error| panic!("{}: {text}: {error}", message.full_name));
    let result =
        method.decode(&bytes).unwrap_or_else(|error| panic!("{}: {text}: {error}", message.full_name));
    let descriptor = pool.get_message_by_name(&message.full_name).unwrap();
    let theirs = DynamicMessage::decode(descriptor.clone(), bytes.clone()).unwrap();
    let their_result = serde_json::to_value(&theirs).unwrap();
    let own_result = serde_json::from_str(&result).unwrap();
    assert!(are_same(&own_result, &their_result), "{}: {text}: {result} {their_result}", message.full_name);

    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let theirs = DynamicMessage::deserialize(descriptor, &mut deserializer).unwrap();
    let from_theirs = method.decode(theirs.encode_to_vec()).unwrap();
    assert_eq!(from_theirs, result, "{}: {text}", message.full_name);

    // A required field with its default value is not part of a result.
    let is_left_out = |field: &MessageField| {
        field.must_be_sent && !(field.has_presence && field.cardinality == Cardinality::Single)
    };
    if !message.fields.iter().any(is_left_out) {
        let again = method.encode(&result).unwrap();
        assert_eq!(method.decode(&again).unwrap(), result, "{}: {text}", message.full_name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_survive_and_are_understood_by_another_implementation(
        method in any::<proptest::sample::Index>(),
        tape in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let Some((methods, pool)) = &*TOOLS else { return Ok(()) };
        check(method.get(methods), pool, &tape);
    }
}
