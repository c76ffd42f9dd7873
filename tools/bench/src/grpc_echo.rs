//! The upstream of the gRPC tool: a server on tonic that echoes its input, on one thread.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::Write;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    ServiceDescriptorProto,
};
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::server::{Server, TcpIncoming};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;
use xtask_client::echo_text;

/// The name of the tool that the gateway makes of the method.
pub(super) const TOOL: &str = "bench_v1_EchoService_Echo";

const PATH: &str = "/bench.v1.EchoService/Echo";

/// The request and the response.
#[derive(Clone, PartialEq, prost::Message)]
struct EchoText {
    #[prost(string, tag = "1")]
    text: String,
}

/// Serves until the process is killed.
pub(super) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?.with_nodelay(Some(true));
        writeln!(std::io::stdout(), "http://{}", incoming.local_addr()?)?;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_file_descriptor_set(descriptors())
            .build_v1()?;
        let server = Server::builder().add_service(EchoService).add_service(reflection);
        Ok(server.serve_with_incoming(incoming).await?)
    })
}

/// The description of the service, for reflection.
fn descriptors() -> FileDescriptorSet {
    let text = FieldDescriptorProto {
        name: Some("text".to_owned()),
        number: Some(1),
        label: Some(Label::Optional.into()),
        r#type: Some(Type::String.into()),
        ..FieldDescriptorProto::default()
    };
    let message = DescriptorProto {
        name: Some("EchoText".to_owned()),
        field: vec![text],
        ..DescriptorProto::default()
    };
    let kind = Some(".bench.v1.EchoText".to_owned());
    let method = MethodDescriptorProto {
        name: Some("Echo".to_owned()),
        input_type: kind.clone(),
        output_type: kind,
        ..MethodDescriptorProto::default()
    };
    let service = ServiceDescriptorProto {
        name: Some("EchoService".to_owned()),
        method: vec![method],
        ..ServiceDescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("bench/v1/echo.proto".to_owned()),
        package: Some("bench.v1".to_owned()),
        message_type: vec![message],
        service: vec![service],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }
}

#[derive(Clone)]
struct EchoService;

impl NamedService for EchoService {
    const NAME: &'static str = "bench.v1.EchoService";
}

impl tonic::codegen::Service<Request<Body>> for EchoService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(Grpc::new(ProstCodec::default()).unary(EchoMethod, request).await) })
    }
}

struct EchoMethod;

impl UnaryService<EchoText> for EchoMethod {
    type Response = EchoText;
    type Future = Ready<Result<tonic::Response<EchoText>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<EchoText>) -> Self::Future {
        ready(Ok(tonic::Response::new(request.into_inner())))
    }
}

/// A client with a connection of its own.
pub(super) struct EchoClient(tonic::client::Grpc<Channel>);

impl EchoClient {
    pub(super) async fn connect(server: std::net::SocketAddr) -> anyhow::Result<EchoClient> {
        let endpoint = Endpoint::from_shared(format!("http://{server}"))?.tcp_nodelay(true);
        Ok(EchoClient(tonic::client::Grpc::new(endpoint.connect().await?)))
    }

    /// Calls the method once, and checks the response.
    pub(super) async fn call(&mut self, unique: &str) -> anyhow::Result<()> {
        let text = echo_text(unique);
        self.0.ready().await?;
        let request = tonic::Request::new(EchoText { text: text.clone() });
        let codec = ProstCodec::<EchoText, EchoText>::default();
        let reply = self.0.unary(request, PathAndQuery::from_static(PATH), codec).await?.into_inner();
        anyhow::ensure!(reply.text == text, "sent {text:?}, received {:?}", reply.text);
        Ok(())
    }
}
