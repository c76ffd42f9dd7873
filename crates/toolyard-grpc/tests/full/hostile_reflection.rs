//! Server reflection of hostile servers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::server_reflection_server::{ServerReflection, ServerReflectionServer};
use tonic_reflection::pb::v1::{
    FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest, ServerReflectionResponse,
    ServiceResponse,
};
use toolyard_core::Backend;
use toolyard_grpc::client::{GrpcBackend, GrpcTools, ToolSource};

use crate::support::{catalog, discovery, names, options, ready, unavailable};

/// Answers a request for a file with files.
type FileScript = fn(&str) -> Vec<FileDescriptorProto>;

/// Reflection whose files come from a script.
struct ScriptedReflection {
    /// Names of the services.
    services: Vec<String>,
    script: FileScript,
    reads: Arc<watch::Sender<usize>>,
}

/// Counts a read when it is dropped.
struct ReadCounter(Arc<watch::Sender<usize>>);

impl Drop for ReadCounter {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

#[tonic::async_trait]
impl ServerReflection for ScriptedReflection {
    type ServerReflectionInfoStream =
        Pin<Box<dyn Stream<Item = Result<ServerReflectionResponse, Status>> + Send>>;

    async fn server_reflection_info(
        &self,
        requests: Request<Streaming<ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let (script, counter) = (self.script, ReadCounter(self.reads.clone()));
        let services: Vec<_> =
            self.services.iter().map(|name| ServiceResponse { name: name.clone() }).collect();
        let answer = move |request: Result<ServerReflectionRequest, Status>| {
            let _counter = &counter;
            let files = |name: &str| {
                let file_descriptor_proto = script(name).iter().map(Message::encode_to_vec).collect();
                MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
            };
            let message = match request?.message_request {
                Some(MessageRequest::ListServices(_)) => {
                    MessageResponse::ListServicesResponse(ListServiceResponse { service: services.clone() })
                }
                Some(MessageRequest::FileContainingSymbol(name) | MessageRequest::FileByFilename(name)) => {
                    files(&name)
                }
                other => panic!("{other:?}"),
            };
            Ok(ServerReflectionResponse { message_response: Some(message), ..Default::default() })
        };
        Ok(Response::new(requests.into_inner().map(answer).boxed()))
    }
}

/// Starts a server with one service and this script. Returns its address and the number of reads that have ended.
fn serve(script: FileScript) -> (String, watch::Receiver<usize>) {
    serve_services(vec!["evil.v1.S".to_owned()], script)
}

/// As [`serve`], with these services.
fn serve_services(services: Vec<String>, script: FileScript) -> (String, watch::Receiver<usize>) {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap().to_string();
    let (reads, counted) = watch::channel(0);
    let reflection =
        ServerReflectionServer::new(ScriptedReflection { services, script, reads: Arc::new(reads) });
    tokio::spawn(Server::builder().add_service(reflection).serve_with_incoming(incoming));
    (address, counted)
}

/// Starts a backend of a server with this script.
fn backend(script: FileScript) -> GrpcBackend {
    GrpcBackend::start(options(&serve(script).0, None))
}

fn file(name: &str, imports: impl IntoIterator<Item = String>) -> FileDescriptorProto {
    let dependency = imports.into_iter().collect();
    FileDescriptorProto { name: Some(name.to_owned()), dependency, ..Default::default() }
}

/// The file of the service with this number of methods, which may receive a stream.
fn service(methods: usize, client_streaming: bool) -> FileDescriptorProto {
    let method = |number| MethodDescriptorProto {
        name: Some(format!("M{number}")),
        input_type: Some(".evil.v1.E".to_owned()),
        output_type: Some(".evil.v1.E".to_owned()),
        client_streaming: Some(client_streaming),
        ..Default::default()
    };
    let message = DescriptorProto { name: Some("E".to_owned()), ..Default::default() };
    let service = ServiceDescriptorProto {
        name: Some("S".to_owned()),
        method: (0..methods).map(method).collect(),
        ..Default::default()
    };
    FileDescriptorProto {
        package: Some("evil.v1".to_owned()),
        message_type: vec![message],
        service: vec![service],
        ..file("s.proto", [])
    }
}

#[tokio::test]
async fn endless_imports_are_bounded() {
    let too_many = "description: the descriptors cannot be used: the server's reflection has more than 10000 \
                    services or files, or 100000 imports";
    let scripts: [FileScript; 3] = [
        // Each file imports others that import others.
        |name| {
            let number: usize = name.strip_prefix('f').map_or(0, |number| number.parse().unwrap());
            vec![file(name, (1..=50).map(|next| format!("f{}", number * 50 + next)))]
        },
        |name| vec![file(name, (0..10_001).map(|number| number.to_string()))],
        |name| vec![file(name, (0..100_001).map(|number| (number % 100).to_string()))],
    ];
    for script in scripts {
        assert_eq!(unavailable(&backend(script)).await, too_many);
    }
}

/// Each request for a service is answered with the file that has all of them.
#[tokio::test]
async fn file_of_many_services_is_read_a_few_times() {
    const SERVICES: usize = 10_000;
    static RESPONSES: AtomicUsize = AtomicUsize::new(0);
    let names = (0..SERVICES).map(|number| format!("evil.v1.S{number}")).collect();
    let script: FileScript = |_| {
        RESPONSES.fetch_add(1, Ordering::Relaxed);
        let only = service(1, false).service.remove(0);
        let named = |number| ServiceDescriptorProto { name: Some(format!("S{number}")), ..only.clone() };
        vec![FileDescriptorProto { service: (0..SERVICES).map(named).collect(), ..service(1, false) }]
    };
    let mut options = options(&serve_services(names, script).0, None);
    let mut discovery = discovery(ToolSource::Server);
    discovery.max_tools = SERVICES;
    options.tools = GrpcTools::Discovered(discovery);
    let backend = GrpcBackend::start(options);
    assert_eq!(ready(&backend).await.tools.len(), SERVICES);
    assert!(RESPONSES.load(Ordering::Relaxed) <= 16, "{RESPONSES:?}");
}

#[tokio::test]
async fn service_that_no_file_defines_is_left_out_with_the_reason() {
    for script in [(|_| vec![file("other.proto", [])]) as FileScript, |_| Vec::new()] {
        let catalog = ready(&backend(script)).await;
        assert!(names(&catalog).is_empty());
        let left_out = &catalog.left_out[0];
        assert_eq!(left_out.len(), 1);
        assert_eq!(&*left_out[0].name, "evil.v1.S");
        assert_eq!(&*left_out[0].reason, "the server's files do not define it");
    }
}

#[tokio::test]
async fn methods_that_are_left_out_are_named_within_a_bound() {
    let catalog = ready(&backend(|_| vec![service(3000, true)])).await;
    let left_out = &catalog.left_out[0];
    assert_eq!(left_out.len(), 501);
    assert_eq!(&*left_out[499].name, "evil.v1.S/M499");
    assert_eq!(&*left_out[500].name, "2500 others");
}

/// Relays connections to the current one of two servers, and closes them when it changes.
async fn relay(listener: TcpListener, server: watch::Receiver<String>) {
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = server.clone();
        tokio::spawn(async move {
            let address = server.borrow_and_update().clone();
            let mut stream = TcpStream::connect(address).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut stream) => {}
                _ = server.changed() => {}
            }
        });
    }
}

#[tokio::test]
async fn server_that_is_replaced_while_its_tools_are_converted_is_read_again() {
    let (old, mut reads) = serve(|_| vec![service(2000, false)]);
    let (new, _) = serve(|_| vec![service(1, false)]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = watch::Sender::new(old);
    tokio::spawn(relay(listener, server.subscribe()));
    let backend = GrpcBackend::start(options(&address, None));
    reads.wait_for(|count| *count > 0).await.unwrap();
    server.send_replace(new);
    catalog(&backend, |catalog| catalog.tools.len() == 1).await;
}

#[tokio::test]
async fn tools_beyond_the_limit_are_not_read_again_without_a_reason() {
    let (address, mut reads) = serve(|_| vec![service(2, false)]);
    let mut options = options(&address, None);
    let mut discovery = discovery(ToolSource::Server);
    discovery.max_tools = 1;
    options.tools = GrpcTools::Discovered(discovery);
    let backend = GrpcBackend::start(options);
    let reason = unavailable(&backend).await;
    assert!(reason.starts_with("description: it has 2 methods, but the limit is 1 tools"), "{reason}");
    // The longest pause between attempts is 30 s. Requests need no time of the clock.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(*reads.borrow_and_update(), 1);
    tokio::time::resume();
    backend.refresh();
    reads.wait_for(|count| *count == 2).await.unwrap();
}
