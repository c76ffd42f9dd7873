//! The members of a `FileDescriptorProto` that reflection needs. The rest stays encoded, because it may have options that
//! are only known by descriptors.

use crate::descriptor::wire::{WireReader, WireValue};

/// Maximum number of imports that are kept of a file. A file with as many exceeds the limit of all files.
const MAX_DEPENDENCIES: usize = 100_001;

/// Maximum number of services that are kept of a file.
const MAX_SERVICES: usize = 10_000;

/// Fields of `FileDescriptorProto` (google/protobuf/descriptor.proto).
mod field {
    pub(super) const NAME: u32 = 1;
    pub(super) const PACKAGE: u32 = 2;
    pub(super) const DEPENDENCY: u32 = 3;
    pub(super) const SERVICE: u32 = 6;
    /// The name of a service.
    pub(super) const SERVICE_NAME: u32 = 1;
}

/// The names in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileHead {
    pub(super) name: String,
    /// The imported files.
    pub(super) dependencies: Vec<String>,
    /// Full names of its services.
    pub(super) services: Vec<String>,
}

impl FileHead {
    /// Reads a file; `None` if it is malformed.
    pub(super) fn read(file: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        let mut package = String::new();
        let mut fields = WireReader::new(file);
        while let Some((number, value)) = fields.field().ok()? {
            let WireValue::Bytes(bytes) = value else { continue };
            match number {
                field::NAME => head.name = text(bytes)?,
                field::PACKAGE => package = text(bytes)?,
                field::DEPENDENCY if head.dependencies.len() < MAX_DEPENDENCIES => {
                    head.dependencies.push(text(bytes)?);
                }
                field::SERVICE if head.services.len() < MAX_SERVICES => {
                    head.services.push(service_name(bytes)?);
                }
                _ => {}
            }
        }
        if !package.is_empty() {
            head.services.iter_mut().for_each(|service| *service = format!("{package}.{service}"));
        }
        Some(head)
    }
}

fn service_name(service: &[u8]) -> Option<String> {
    let mut name = String::new();
    let mut fields = WireReader::new(service);
    while let Some((number, value)) = fields.field().ok()? {
        if let (field::SERVICE_NAME, WireValue::Bytes(bytes)) = (number, value) {
            name = text(bytes)?;
        }
    }
    Some(name)
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::{FileDescriptorProto, ServiceDescriptorProto};

    use super::*;

    fn file(package: &str, services: &[&str]) -> Vec<u8> {
        let service =
            |name: &&str| ServiceDescriptorProto { name: Some((*name).to_owned()), ..Default::default() };
        let file = FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            package: (!package.is_empty()).then(|| package.to_owned()),
            dependency: vec!["b.proto".to_owned()],
            service: services.iter().map(service).collect(),
            ..Default::default()
        };
        file.encode_to_vec()
    }

    #[test]
    fn names_of_a_file_are_read() {
        let check = |file: &[u8], services: &[&str]| {
            let head = FileHead::read(file).unwrap();
            assert_eq!((&*head.name, &*head.dependencies), ("a.proto", &["b.proto".to_owned()][..]));
            assert_eq!(head.services, services);
        };
        check(&file("", &["S"]), &["S"]);
        check(&file("a.v1", &["S", "T"]), &["a.v1.S", "a.v1.T"]);
        check(&file("a.v1", &[]), &[]);
        assert_eq!(FileHead::read(&[0xff; 9]), None);
        assert_eq!(FileHead::read(b"\x0a\x01\xff"), None);
    }

    #[test]
    fn many_services_and_imports_take_bounded_memory() {
        let imports = [b"\x1a\x00".as_slice(); MAX_DEPENDENCIES + 5].concat();
        assert_eq!(FileHead::read(&imports).unwrap().dependencies.len(), MAX_DEPENDENCIES);
        let services = [b"\x32\x00".as_slice(); MAX_SERVICES + 5].concat();
        assert_eq!(FileHead::read(&services).unwrap().services.len(), MAX_SERVICES);
    }
}
