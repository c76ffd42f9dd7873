//! The services of a server with their files, by server reflection: `grpc.reflection.v1`, or else `v1alpha`, whose
//! messages are the same.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use bytes::Bytes;
use http::HeaderMap;
use http::uri::PathAndQuery;
use prost::encoding::{WireType, encode_key, encode_varint};
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use toolyard_net::budget::ByteReservation;

use super::channel::GrpcChannel;
use super::delivery;
use super::details::shortened;
use super::file_head::FileHead;
use super::status::{RequestFault, foreign_http_status};

/// The versions of the protocol with their methods, the preferred one first.
const VERSIONS: [(&str, &str); 2] = [
    ("v1", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
    ("v1alpha", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
];

/// Maximum number of services and files of a server.
const MAX_ITEMS: usize = 10_000;

/// Maximum number of imports of all files. Those of Google's APIs have some thousands.
const MAX_IMPORTS: usize = 100_000;

/// Number of requests that wait for their responses at a time. A server may answer each with all of its files, which make
/// the next requests needless.
const OPEN_REQUESTS: usize = 16;

/// Maximum length of the reason for which a server does not give a file, in characters.
const MAX_REASON_CHARS: usize = 200;

/// The services of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReflectedServices {
    /// Version of the protocol.
    pub(super) version: &'static str,
    /// Full names of the services.
    pub(super) services: Vec<String>,
    /// Services whose descriptors the server does not give, with its reason.
    pub(super) missing: Vec<(String, String)>,
    /// A `FileDescriptorSet` of the services, each file after those that it imports.
    pub(super) file_set: Bytes,
}

/// The reason why the services cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReflectionError {
    #[error("the server has no reflection")]
    Unsupported,
    #[error("{0}")]
    Fault(#[source] FaultError),
    #[error("the server's reflection is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the server's reflection has more than {MAX_ITEMS} services or files, or {MAX_IMPORTS} imports")]
    TooMany,
    #[error("the server's reflection answers another request")]
    Mismatch,
}

/// A failed request as an error.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.cause())]
pub(super) struct FaultError(pub(super) RequestFault);

/// Reads the services. `is_wanted` selects those whose files are read.
///
/// # Errors
/// If the server has no reflection, or it cannot be read within `bytes` bytes.
pub(super) async fn read(
    channel: &GrpcChannel,
    headers: &HeaderMap,
    bytes: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<ReflectedServices, ReflectionError> {
    for (version, path) in VERSIONS {
        let session = ReflectionSession::open(channel, headers, path, bytes).await;
        let read = match session {
            Ok(session) => session.read(version, &is_wanted).await,
            Err(error) => Err(error),
        };
        match read {
            Err(ReflectionError::Unsupported) => {}
            read => return read,
        }
    }
    Err(ReflectionError::Unsupported)
}

/// A stream of requests and its responses, which have the same order.
struct ReflectionSession {
    requests: mpsc::UnboundedSender<ServerReflectionRequest>,
    responses: Streaming<(ServerReflectionResponse, ByteReservation)>,
    bytes: usize,
    files: BTreeMap<String, (Bytes, FileHead)>,
    /// Full names of the services that the files define.
    defined: HashSet<String>,
    read_bytes: usize,
    /// The reservation of the files.
    reserved: ByteReservation,
    /// Number of the imports of all files.
    import_count: usize,
    /// Imports of files that were added, and not requested yet.
    imports: BTreeSet<String>,
    /// The answer to the first request.
    services: Vec<String>,
}

impl ReflectionSession {
    /// Opens the stream and lists the services.
    async fn open(
        channel: &GrpcChannel,
        headers: &HeaderMap,
        path: &'static str,
        bytes: usize,
    ) -> Result<Self, ReflectionError> {
        let (requests, mut receiver) = mpsc::unbounded_channel();
        // Some servers send no headers before the first request.
        let list = MessageRequest::ListServices(String::new());
        let _is_open = requests.send(reflection_request(list));
        let stream = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
        let request = delivery::request(stream, headers, None);
        let codec = ProstCodec::<ServerReflectionRequest, ServerReflectionResponse>::default();
        let (mut client, codec) = channel.grpc(bytes, codec);
        let responses = client.streaming(request, PathAndQuery::from_static(path), codec).await;
        let responses = responses.map_err(|status| failed(status, bytes))?.into_inner();
        let mut session = Self {
            requests,
            responses,
            bytes,
            files: BTreeMap::new(),
            defined: HashSet::new(),
            read_bytes: 0,
            reserved: ByteReservation::default(),
            import_count: 0,
            imports: BTreeSet::new(),
            services: Vec::new(),
        };
        match session.next().await?.0 {
            MessageResponse::ListServicesResponse(list) => {
                session.services = list.service.into_iter().map(|service| service.name).collect();
            }
            MessageResponse::ErrorResponse(error) => {
                let status = Status::new(Code::from_i32(error.error_code), error.error_message);
                return Err(failed(status, bytes));
            }
            _ => return Err(ReflectionError::Mismatch),
        }
        if session.services.len() > MAX_ITEMS {
            return Err(ReflectionError::TooMany);
        }
        Ok(session)
    }

    async fn read(
        mut self,
        version: &'static str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<ReflectedServices, ReflectionError> {
        let services = std::mem::take(&mut self.services);
        let wanted: Vec<String> = services.iter().filter(|name| is_wanted(name)).cloned().collect();
        let mut missing = self.request_all(wanted.clone(), RequestedFile::OfService).await?;
        let mut requested = BTreeSet::new();
        loop {
            let imports = std::mem::take(&mut self.imports).into_iter();
            let absent: Vec<String> = imports
                .filter(|name| !self.files.contains_key(name) && requested.insert(name.clone()))
                .collect();
            if absent.is_empty() {
                break;
            }
            if requested.len() > MAX_ITEMS {
                return Err(ReflectionError::TooMany);
            }
            let _unreadable = self.request_all(absent, RequestedFile::Named).await?;
        }
        missing.extend(self.undefined(wanted, &missing));
        Ok(ReflectedServices { version, services, missing, file_set: file_set(&self.files) })
    }

    /// Returns the services that no file defines, though the server has given one.
    fn undefined(&self, wanted: Vec<String>, missing: &[(String, String)]) -> Vec<(String, String)> {
        let refused: HashSet<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let is_known = |name: &String| refused.contains(name.as_str()) || self.defined.contains(name);
        let undefined = wanted.into_iter().filter(|name| !is_known(name));
        undefined.map(|name| (name, "the server's files do not define it".to_owned())).collect()
    }

    /// Requests files by these names and adds them. Returns the names that the server refuses.
    async fn request_all(
        &mut self,
        names: Vec<String>,
        kind: RequestedFile,
    ) -> Result<Vec<(String, String)>, ReflectionError> {
        let mut names = names.into_iter();
        let (mut open, mut refused) = (VecDeque::new(), Vec::new());
        loop {
            while open.len() < OPEN_REQUESTS
                && let Some(name) = names.find(|name| !self.has(kind, name))
            {
                let _is_open = self.requests.send(reflection_request(kind.request(name.clone())));
                open.push_back(name);
            }
            let Some(name) = open.pop_front() else { return Ok(refused) };
            let (response, mut reserved) = self.next().await?;
            match response {
                MessageResponse::FileDescriptorResponse(files) => {
                    let before = self.read_bytes;
                    files.file_descriptor_proto.into_iter().try_for_each(|file| self.add(file))?;
                    // Files that are known are dropped.
                    self.reserved.add(reserved.split(self.read_bytes - before));
                }
                MessageResponse::ErrorResponse(error) => {
                    refused.push((name, shortened(&error.error_message, MAX_REASON_CHARS)));
                }
                _ => return Err(ReflectionError::Mismatch),
            }
        }
    }

    /// Returns `true` if a requested file has come with another one.
    fn has(&self, kind: RequestedFile, name: &str) -> bool {
        match kind {
            RequestedFile::OfService => self.defined.contains(name),
            RequestedFile::Named => self.files.contains_key(name),
        }
    }

    fn add(&mut self, file: Vec<u8>) -> Result<(), ReflectionError> {
        // Services of a malformed file are undefined.
        let Some(head) = FileHead::read(&file) else { return Ok(()) };
        if self.files.contains_key(&head.name) {
            return Ok(());
        }
        self.read_bytes = self.read_bytes.saturating_add(file.len());
        if self.read_bytes > self.bytes {
            return Err(ReflectionError::TooLarge(self.bytes));
        }
        self.import_count += head.dependencies.len();
        if self.files.len() >= MAX_ITEMS || self.import_count > MAX_IMPORTS {
            return Err(ReflectionError::TooMany);
        }
        self.imports.extend(head.dependencies.iter().cloned());
        self.defined.extend(head.services.iter().cloned());
        self.files.insert(head.name.clone(), (file.into(), head));
        Ok(())
    }

    async fn next(&mut self) -> Result<(MessageResponse, ByteReservation), ReflectionError> {
        let received = self.responses.message().await.map_err(|status| failed(status, self.bytes))?;
        let (response, reserved) = received.ok_or(ReflectionError::Mismatch)?;
        Ok((response.message_response.ok_or(ReflectionError::Mismatch)?, reserved))
    }
}

/// A file by a name.
#[derive(Clone, Copy)]
enum RequestedFile {
    /// The file that defines the service of this name.
    OfService,
    /// The file of this name.
    Named,
}

impl RequestedFile {
    fn request(self, name: String) -> MessageRequest {
        match self {
            Self::OfService => MessageRequest::FileContainingSymbol(name),
            Self::Named => MessageRequest::FileByFilename(name),
        }
    }
}

fn reflection_request(message: MessageRequest) -> ServerReflectionRequest {
    ServerReflectionRequest { host: String::new(), message_request: Some(message) }
}

fn failed(status: Status, bytes: usize) -> ReflectionError {
    match RequestFault::of(status, bytes) {
        RequestFault::Refused(status)
            if status.code() == Code::Unimplemented && foreign_http_status(&status).is_none() =>
        {
            ReflectionError::Unsupported
        }
        RequestFault::TooLarge(bytes) => ReflectionError::TooLarge(bytes),
        fault => ReflectionError::Fault(FaultError(fault)),
    }
}

/// Writes a `FileDescriptorSet`, each file after those that it imports. Files of a cycle keep the order of their names.
fn file_set(files: &BTreeMap<String, (Bytes, FileHead)>) -> Bytes {
    let mut written = BTreeSet::new();
    let mut set = Vec::new();
    for name in files.keys() {
        // A path of files, each imported by the one before, with the number of its imports that are done.
        let mut path = vec![(name, 0)];
        let mut open = BTreeSet::from([name]);
        while let Some((name, done)) = path.last_mut() {
            let Some((file, head)) = files.get(*name).filter(|_| !written.contains(*name)) else {
                path.pop();
                continue;
            };
            if let Some(import) = head.dependencies.get(*done) {
                *done += 1;
                if open.insert(import) {
                    path.push((import, 0));
                }
                continue;
            }
            encode_key(1, WireType::LengthDelimited, &mut set);
            encode_varint(file.len() as u64, &mut set);
            set.extend_from_slice(file);
            written.insert(*name);
            path.pop();
        }
    }
    set.into()
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::{FileDescriptorProto, FileDescriptorSet};

    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &[&str])], expected: &[&str]) {
        let file = |(name, imports): &(&str, &[&str])| {
            let imports = imports.iter().map(|import| (*import).to_owned()).collect();
            let file = FileDescriptorProto {
                name: Some((*name).to_owned()),
                dependency: imports,
                ..Default::default()
            };
            let bytes = file.encode_to_vec();
            let head = FileHead::read(&bytes).unwrap();
            ((*name).to_owned(), (bytes.into(), head))
        };
        let set = file_set(&files.iter().map(file).collect());
        let set = FileDescriptorSet::decode(&*set).unwrap();
        let names: Vec<_> = set.file.iter().map(|file| file.name().to_owned()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn imported_files_come_first() {
        check(&[], &[]);
        check(&[("a", &["c", "b"]), ("b", &["c"]), ("c", &[])], &["c", "b", "a"]);
        check(&[("a", &["google/protobuf/any.proto"])], &["a"]);
        check(&[("a", &["b"]), ("b", &["a"])], &["b", "a"]);
        check(&[("a", &["a"])], &["a"]);
    }
}
