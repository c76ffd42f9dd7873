//! JSON values for a validator: every access is a step of the [`StepMeter`].

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use jsonschema::JsonType;
use jsonschema::json::{self, Json, JsonNumber, NodeIdentity, SerdeJson};
use serde_json::{Map, Value};

use super::meter::{StepMeter, StepWeights};

/// Steps of describing a fault, which takes about half a kilobyte for the time of the check.
const FAULT_STEPS: u64 = 64;

/// Maximum steps of checking one member's name beside those for its length: `propertyNames` has no meter of its own.
/// [`SchemaSurvey`](super::survey::SchemaSurvey) refuses schemas that could take more.
const NAME_STEPS: u64 = 64 * 1024;

/// The representation of metered values.
pub(super) struct MeteredValue;

/// A value with the meter of its check.
#[derive(Clone, Copy)]
pub(super) struct MeteredNode<'a> {
    value: &'a Value,
    meter: &'a StepMeter,
    /// Length of its path in bytes, which is written into each of its faults.
    path: usize,
}

#[derive(Clone, Copy)]
pub(super) struct MeteredMembers<'a>(MeteredNode<'a>, &'a Map<String, Value>);

#[derive(Clone, Copy)]
pub(super) struct MeteredItems<'a>(MeteredNode<'a>, &'a [Value]);

pub(super) struct MembersIter<'a>(MeteredNode<'a>, serde_json::map::Iter<'a>);

pub(super) struct ItemsIter<'a>(MeteredNode<'a>, std::slice::Iter<'a, Value>);

/// The name of a member as a value, with a meter of its own.
pub(super) struct NameBuffer {
    name: Value,
    meter: StepMeter,
}

impl Default for NameBuffer {
    fn default() -> Self {
        // The weights of patterns were spent when the members were listed.
        Self { name: Value::Null, meter: StepMeter::new(0, None, StepWeights::default()) }
    }
}

impl Json for MeteredValue {
    type Node<'a> = MeteredNode<'a>;
    type PreparedKey = String;
    type StringBuffer = NameBuffer;

    // The constant of `serde_json` values, which these are.
    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut NameBuffer, name: &str, f: impl FnOnce(MeteredNode<'_>) -> T) -> T {
        buffer.name = Value::String(name.to_owned());
        buffer.meter.refill(NAME_STEPS.saturating_add(name.len() as u64));
        f(MeteredNode::root(&buffer.name, &buffer.meter))
    }
}

impl<'a> MeteredNode<'a> {
    pub(super) fn root(value: &'a Value, meter: &'a StepMeter) -> Self {
        Self { value, meter, path: 0 }
    }

    fn look(self) -> &'a Value {
        self.meter.spend(1);
        self.value
    }

    /// Returns a value inside of this one, with the length of its name.
    fn child(self, value: &'a Value, name: usize) -> Self {
        self.meter.spend(self.meter.weights.child);
        Self { value, path: self.path + 1 + name, ..self }
    }

    fn counted(self) -> CountedText<'a> {
        CountedText { value: self.value, meter: self.meter }
    }
}

impl<'a> json::Node<'a, MeteredValue> for MeteredNode<'a> {
    type Object = MeteredMembers<'a>;
    type Array = MeteredItems<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<MeteredMembers<'a>> {
        self.look().as_object().map(|members| MeteredMembers(*self, members))
    }

    fn as_array(&self) -> Option<MeteredItems<'a>> {
        self.look().as_array().map(|items| MeteredItems(*self, items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.look().as_str()?;
        self.meter.spend_on_text(text.len(), self.meter.weights.text);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        json::Node::<SerdeJson>::as_number(&self.look())
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn json_type(&self) -> JsonType {
        json::Node::<SerdeJson>::json_type(&self.look())
    }

    fn string_length(&self) -> Option<u64> {
        let value = self.look();
        self.meter.spend(value.as_str().map_or(0, str::len) as u64 / 64);
        json::Node::<SerdeJson>::string_length(&value)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.counted().equals(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        self.meter.spend(FAULT_STEPS + self.path as u64);
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.look()) as usize))
    }
}

impl<'a> json::Object<'a, MeteredValue> for MeteredMembers<'a> {
    type Node = MeteredNode<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.meter.spend(1);
        self.1.len()
    }

    fn get(&self, key: &String) -> Option<MeteredNode<'a>> {
        self.0.meter.spend(1);
        self.1.get(key).map(|value| self.0.child(value, key.len()))
    }

    fn members(&self) -> MembersIter<'a> {
        self.0.meter.spend(1);
        MembersIter(self.0, self.1.iter())
    }
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, MeteredNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let Self(object, members) = self;
        let (name, value) = members.next()?;
        let weights = &object.meter.weights;
        object.meter.spend(weights.name);
        object.meter.spend_on_text(name.len(), weights.name_text);
        Some((name.as_str(), object.child(value, name.len())))
    }
}

impl<'a> json::Array<'a, MeteredValue> for MeteredItems<'a> {
    type Node = MeteredNode<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.0.meter.spend(1);
        self.1.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        self.0.meter.spend(1);
        ItemsIter(self.0, self.1.iter())
    }

    #[expect(clippy::mutable_key_type, reason = "the meter is no part of what is compared")]
    fn is_unique(&self) -> bool {
        // Without a random key, so that a check takes the same steps each time. Colliding values cost steps.
        let mut seen: HashSet<_, BuildHasherDefault<DefaultHasher>> = HashSet::default();
        self.elements().all(|item| seen.insert(item.counted()))
    }
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = MeteredNode<'a>;

    fn next(&mut self) -> Option<MeteredNode<'a>> {
        // A position takes about four digits.
        self.1.next().map(|value| self.0.child(value, 4))
    }
}

/// A value that spends steps for comparison and hashing: numbers or shapes of items may be chosen to have one hash.
struct CountedText<'a> {
    value: &'a Value,
    meter: &'a StepMeter,
}

impl CountedText<'_> {
    /// Equality of JSON Schema: numbers by value, objects in any order.
    fn equals(&self, other: &Value) -> bool {
        let with = |value| CountedText { value, meter: self.meter };
        self.meter.spend(1);
        match (self.value, other) {
            (Value::Array(these), Value::Array(those)) => {
                let mut pairs = these.iter().zip(those);
                these.len() == those.len() && pairs.all(|(this, that)| with(this).equals(that))
            }
            (Value::Object(these), Value::Object(those)) => {
                let equal =
                    |(name, this): (&String, _)| those.get(name).is_some_and(|that| with(this).equals(that));
                these.len() == those.len() && these.iter().all(equal)
            }
            (Value::String(this), Value::String(that)) => {
                self.meter.spend(this.len().min(that.len()) as u64 / 64);
                this == that
            }
            (this, that) => json::Node::<SerdeJson>::equals_value(&this, that),
        }
    }
}

impl PartialEq for CountedText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other.value)
    }
}

impl Eq for CountedText<'_> {}

impl Hash for CountedText<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let with = |value| CountedText { value, meter: self.meter };
        self.meter.spend(1);
        match self.value {
            Value::Null => state.write_u8(0),
            Value::Bool(value) => value.hash(state),
            // Equal numbers have equal bits here, except for the two zeros.
            Value::Number(number) => {
                let number = JsonNumber::as_f64(&number).filter(|number| *number != 0.0);
                number.unwrap_or_default().to_bits().hash(state);
            }
            Value::String(text) => {
                self.meter.spend(text.len() as u64 / 64);
                text.hash(state);
            }
            Value::Array(items) => {
                state.write_usize(items.len());
                items.iter().for_each(|item| with(item).hash(state));
            }
            // In any order.
            Value::Object(members) => {
                let hash = |(name, value)| {
                    let mut hasher = DefaultHasher::new();
                    (name, with(value)).hash(&mut hasher);
                    hasher.finish()
                };
                state.write_u64(members.iter().map(hash).fold(0, u64::wrapping_add));
            }
        }
    }
}
