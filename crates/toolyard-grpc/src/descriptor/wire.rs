//! The wire format of protocol buffers: reading without copies, and writing.

/// Maximum nesting of groups that are skipped.
const MAX_GROUPS: usize = 100;

/// Largest number of a field.
const MAX_FIELD: u64 = (1 << 29) - 1;

/// A value of a field as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A length-delimited value, or a group without its tags.
    Bytes(&'a [u8]),
    Group(&'a [u8]),
}

/// Wire types of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    GroupStart = 3,
    GroupEnd = 4,
    Fixed32 = 5,
}

/// The reason why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid protobuf message: {0}")]
pub(crate) struct WireError(pub(super) &'static str);

const TRUNCATED: WireError = WireError("it ends within a field");

/// The fields of a message, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads all fields.
    pub(super) fn check(mut self) -> Result<(), WireError> {
        while self.field()?.is_some() {}
        Ok(())
    }

    /// Reads the next field; `None` at the end.
    pub(crate) fn field(&mut self) -> Result<Option<(u32, WireValue<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        let value = match kind {
            WireType::Varint => WireValue::Varint(self.varint()?),
            WireType::Fixed64 => WireValue::Fixed64(self.fixed64()?),
            WireType::Fixed32 => WireValue::Fixed32(self.fixed32()?),
            WireType::Bytes => WireValue::Bytes(self.delimited()?),
            WireType::GroupStart => WireValue::Group(self.group(number)?),
            WireType::GroupEnd => return Err(WireError("a group ends that did not begin")),
        };
        Ok(Some((number, value)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { TRUNCATED } else { WireError("an integer has more than ten bytes") })
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, WireError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(super) fn fixed32(&mut self) -> Result<u32, WireError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| TRUNCATED)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn tag(&mut self) -> Result<(u32, WireType), WireError> {
        let tag = self.varint()?;
        let kind = match tag & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            3 => WireType::GroupStart,
            4 => WireType::GroupEnd,
            5 => WireType::Fixed32,
            _ => return Err(WireError("a field has an unknown wire type")),
        };
        match tag >> 3 {
            number @ 1..=MAX_FIELD => Ok((u32::try_from(number).unwrap_or_default(), kind)),
            _ => Err(WireError("a field has an invalid number")),
        }
    }

    /// Reads up to the end of a group, iteratively.
    fn group(&mut self, number: u32) -> Result<&'a [u8], WireError> {
        let start = self.rest;
        let mut open = vec![number];
        loop {
            let end = start.len() - self.rest.len();
            if self.rest.is_empty() {
                return Err(TRUNCATED);
            }
            let (number, kind) = self.tag()?;
            match kind {
                WireType::Varint => _ = self.varint()?,
                WireType::Fixed64 => _ = self.fixed64()?,
                WireType::Fixed32 => _ = self.fixed32()?,
                WireType::Bytes => _ = self.delimited()?,
                WireType::GroupStart if open.len() >= MAX_GROUPS => {
                    return Err(WireError("groups are nested too deeply"));
                }
                WireType::GroupStart => open.push(number),
                WireType::GroupEnd if open.pop() != Some(number) => {
                    return Err(WireError("a group ends that did not begin"));
                }
                WireType::GroupEnd if open.is_empty() => return Ok(&start[..end]),
                WireType::GroupEnd => {}
            }
        }
    }
}

pub(super) fn put_tag(out: &mut Vec<u8>, number: u32, kind: WireType) {
    put_varint(out, u64::from(number) << 3 | kind as u64);
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Begins a length-delimited value: its length takes one byte at first. Returns its start for [`end_delimited`].
pub(super) fn begin_delimited(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// Writes the length of a value in front of it.
pub(super) fn end_delimited(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out[start - 1] = short;
        return;
    }
    let mut prefix = Vec::with_capacity(5);
    put_varint(&mut prefix, length as u64);
    out.splice(start - 1..start, prefix);
}

pub(super) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_faults_are_named() {
        let read = |bytes: &[u8]| {
            let mut reader = WireReader::new(bytes);
            let mut fields = Vec::new();
            while let Some(field) = reader.field().map_err(|error| error.0)? {
                fields.push(format!("{field:?}"));
            }
            Ok::<_, &str>(fields.join(" "))
        };
        let check = |bytes: &[u8], expected: Result<&str, &str>| {
            assert_eq!(read(bytes).as_deref().map_err(|error| *error), expected, "{bytes:?}");
        };
        check(&[], Ok(""));
        check(&[8, 150, 1], Ok("(1, Varint(150))"));
        check(&[18, 1, 7, 29, 1, 0, 0, 0], Ok("(2, Bytes([7])) (3, Fixed32(1))"));
        check(&[11, 11, 8, 1, 12, 12, 8, 2], Ok("(1, Group([11, 8, 1, 12])) (1, Varint(2))"));
        check(&[8], Err(TRUNCATED.0));
        check(&[18, 2, 1], Err(TRUNCATED.0));
        check(&[11, 8, 1], Err(TRUNCATED.0));
        check(&[12], Err("a group ends that did not begin"));
        check(&[11, 20], Err("a group ends that did not begin"));
        check(&[0, 1], Err("a field has an invalid number"));
        check(&[14, 1], Err("a field has an unknown wire type"));
        check(&[[8].as_slice(), &[255; 10]].concat(), Err("an integer has more than ten bytes"));
        check(&[11; 200], Err("groups are nested too deeply"));
    }

    #[test]
    fn lengths_are_written_in_front() {
        for length in [0, 1, 127, 128, 20_000] {
            let mut out = Vec::new();
            put_tag(&mut out, 2, WireType::Bytes);
            let start = begin_delimited(&mut out);
            out.resize(out.len() + length, 7);
            end_delimited(&mut out, start);
            let read = WireReader::new(&out).field().unwrap();
            assert_eq!(read, Some((2, WireValue::Bytes(&vec![7; length]))));
        }
    }

    #[test]
    fn signed_integers_survive() {
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }
}
