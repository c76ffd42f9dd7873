use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolyard_agent::search::{TextEmbedder, TextEmbedderError};
use toolyard_manifest::{EmbeddingSettings, EndpointUrl, SecretString};

use super::*;

/// A scripted endpoint, which records the key and the body of each request.
struct EmbeddingFixture {
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    settings: EmbeddingSettings,
    _serving: JoinSet<()>,
}

impl EmbeddingFixture {
    async fn start(status: u16, body: String) -> Self {
        let requests = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let recorded = requests.clone();
        let answer = move |headers: HeaderMap, request: String| async move {
            let key = headers["authorization"].to_str().unwrap().to_owned();
            recorded.lock().unwrap().push((key, serde_json::from_str(&request).unwrap()));
            Response::builder().status(status).body(Body::from(body.clone())).unwrap()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let routes = Router::new().route("/v1/embeddings", post(answer));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let settings = EmbeddingSettings {
            base_url: EndpointUrl::parse(&url).unwrap(),
            model: "small".to_owned(),
            api_key: Some(SecretString::new("hunter2")),
            dimensions: None,
            timeout: Duration::from_secs(30),
            query_timeout: Duration::from_secs(30),
            concurrent: 1,
            batch: 64,
            bytes: 1 << 20,
        };
        Self { requests, settings, _serving: serving }
    }
}

fn list(vectors: &[&[f64]]) -> String {
    let item = |(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector});
    let data: Vec<Value> = vectors.iter().enumerate().map(item).collect();
    json!({"object": "list", "data": data, "model": "small", "usage": {"total_tokens": 8}}).to_string()
}

#[tokio::test]
async fn request_has_the_form_of_the_reference() {
    for (dimensions, expected) in [
        (None, json!({"model": "small", "input": ["one", "two"]})),
        (Some(2), json!({"model": "small", "input": ["one", "two"], "dimensions": 2})),
    ] {
        let fixture = EmbeddingFixture::start(200, list(&[&[3.0, 0.0], &[0.0, 1.0]])).await;
        let settings = EmbeddingSettings { dimensions, ..fixture.settings.clone() };
        let vectors = EmbeddingClient::new(&settings).unwrap().embed(&["one", "two"]).await.unwrap();
        assert_eq!(
            vectors.iter().map(|vector| vector.to_vec()).collect::<Vec<_>>(),
            [[1.0, 0.0], [0.0, 1.0]]
        );
        assert_eq!(*fixture.requests.lock().unwrap(), [("Bearer hunter2".to_owned(), expected)]);
    }
}

/// Neither the key nor the response is in an error, which a log repeats.
#[tokio::test]
async fn faults_of_the_endpoint_are_errors() {
    let unusable = "the response of the embedding endpoint is unusable: ";
    let refused = "the embedding endpoint answered with status 400 Bad Request";
    let cases = [
        (
            503,
            "hunter2".to_owned(),
            "the embedding endpoint answered with status 503 Service Unavailable".to_owned(),
        ),
        (302, String::new(), "the embedding endpoint answered with status 302 Found".to_owned()),
        (400, "hunter2".to_owned(), refused.to_owned()),
        (200, "hunter2".to_owned(), format!("{unusable}it is not a list of embeddings")),
        (200, list(&[]), format!("{unusable}it has 0 embeddings for 1 texts")),
        (200, list(&[&[1.0, 0.0, 0.0]]), format!("{unusable}an embedding has 3 dimensions instead of 2")),
        (200, list(&[&[0.0, 0.0]]), format!("{unusable}an embedding has no direction")),
        (200, " ".repeat(1 << 20), "cannot read the response of the embedding endpoint".to_owned()),
    ];
    for (status, body, expected) in cases {
        let fixture = EmbeddingFixture::start(status, body).await;
        let settings = EmbeddingSettings { dimensions: Some(2), ..fixture.settings.clone() };
        let error = EmbeddingClient::new(&settings).unwrap().embed(&["text"]).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(matches!(error, TextEmbedderError::Refused(_)), status == 400, "{expected}");
    }
    let unreachable = EmbeddingSettings {
        base_url: EndpointUrl::parse("http://127.0.0.1:1/v1").unwrap(),
        ..EmbeddingFixture::start(200, String::new()).await.settings
    };
    let error = EmbeddingClient::new(&unreachable).unwrap().embed(&["text"]).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot reach the embedding endpoint: connection refused");
}
