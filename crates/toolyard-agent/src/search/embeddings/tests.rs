use std::sync::atomic::AtomicUsize;

use futures_util::FutureExt;
use toolyard_manifest::EndpointUrl;
use toolyard_rank::parse_embeddings;

use super::*;
use crate::search::testing::{SearchHarness, sample};

/// Behaviour of the endpoint for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    Answers,
    Fails,
    Hangs,
    /// Refuses requests with the texts of more than one tool, and that of one tool.
    RefusesText(&'static str),
    RefusesAll,
    /// Vectors with another number of dimensions.
    OtherModel,
}

/// An embedder whose dimensions are subjects: calendars, shops, issues of software, and the rest.
struct SubjectEmbedder {
    behaviour: watch::Receiver<Behaviour>,
    requests: Arc<Mutex<Vec<Vec<String>>>>,
}

const SUBJECTS: [&[&str]; 3] =
    [&["calendar", "Verabredung"], &["shop", "Bestellung"], &["issue", "Fehlerbericht"]];

fn vector(text: &str, more: usize) -> String {
    let of = |words: &&[&str]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.1 };
    let mut values: Vec<f64> = SUBJECTS.iter().map(of).collect();
    // Texts with a common verb are nearer.
    values.push(if text.contains("delete") || text.contains("absagen") { 1.0 } else { 0.1 });
    values.extend(vec![0.1; more]);
    format!(r#"{{"embedding": {values:?}}}"#)
}

impl TextEmbedder for SubjectEmbedder {
    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<EmbeddingVector>, TextEmbedderError>> {
        async move {
            let owned = texts.iter().map(|text| (*text).to_owned()).collect();
            self.requests.lock().expect("no panic").push(owned);
            let behaviour = *self.behaviour.borrow();
            let error = || std::io::Error::other("hunter2 is hidden").into();
            match behaviour {
                Behaviour::Fails => return Err(TextEmbedderError::Failed(error())),
                Behaviour::RefusesAll => return Err(TextEmbedderError::Refused(error())),
                Behaviour::RefusesText(part) if texts.iter().any(|text| text.contains(part)) => {
                    return Err(TextEmbedderError::Refused(error()));
                }
                Behaviour::Hangs => std::future::pending::<()>().await,
                _ => {}
            }
            let more = usize::from(behaviour == Behaviour::OtherModel);
            let vectors: Vec<String> = texts.iter().map(|text| vector(text, more)).collect();
            let body = format!(r#"{{"data": [{}]}}"#, vectors.join(","));
            parse_embeddings(body.as_bytes(), texts.len(), None)
                .map_err(|error| TextEmbedderError::Failed(error.into()))
        }
        .boxed()
    }
}

/// The sample gateway with embeddings.
struct EmbeddingFixture {
    harness: SearchHarness,
    embeddings: Arc<ToolEmbeddings>,
    behaviour: watch::Sender<Behaviour>,
    requests: Arc<Mutex<Vec<Vec<String>>>>,
    _following: tokio::task::JoinSet<()>,
}

fn settings() -> EmbeddingSettings {
    EmbeddingSettings {
        base_url: EndpointUrl::parse("http://127.0.0.1/v1").expect("a URL"),
        model: "subjects".to_owned(),
        api_key: None,
        dimensions: None,
        timeout: Duration::from_secs(30),
        query_timeout: Duration::from_millis(500),
        concurrent: 1,
        batch: 3,
        bytes: 1 << 20,
    }
}

impl EmbeddingFixture {
    /// Starts with this behaviour and waits for as many requests.
    async fn start(behaviour: Behaviour, settings: EmbeddingSettings, requests: usize) -> Self {
        let mut harness = sample();
        let (behaviour, seen) = watch::channel(behaviour);
        let recorded = Arc::<Mutex<Vec<Vec<String>>>>::default();
        let embedder = SubjectEmbedder { behaviour: seen, requests: recorded.clone() };
        let embeddings = Arc::new(ToolEmbeddings::new(Box::new(embedder), settings));
        let mut following = tokio::task::JoinSet::new();
        let (finder, followed) = (harness.search.finder.clone(), embeddings.clone());
        following.spawn(async move { followed.follow(&finder).await });
        let finder = harness.search.finder.clone();
        following.spawn(async move { finder.follow().await });
        harness.search.embeddings = Some(embeddings.clone());
        let fixture = Self { harness, embeddings, behaviour, requests: recorded, _following: following };
        fixture.until(|fixture| fixture.requests().len() >= requests).await;
        fixture
    }

    /// Starts with vectors of all eight tools.
    async fn complete() -> Self {
        let fixture = Self::start(Behaviour::Answers, settings(), 3).await;
        fixture.until(|fixture| fixture.embeddings.report().vectors == 8).await;
        fixture
    }

    /// Waits for a state. Paused time passes only while nothing else is to be done.
    async fn until(&self, is_reached: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            if is_reached(self) {
                return;
            }
            tokio::time::sleep(Duration::from_micros(10)).await;
        }
        panic!("{:?} after {:?}", self.embeddings.report(), self.requests());
    }

    fn requests(&self) -> Vec<Vec<String>> {
        self.requests.lock().expect("no panic").clone()
    }

    fn take_requests(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.requests.lock().expect("no panic"))
    }

    async fn names(&self, scope: &[&str], query: &str, limit: usize, deadline: Option<Duration>) -> String {
        let (view, finder) = (self.harness.view(scope), &self.harness.search.finder);
        let deadline = deadline.map(|time| Instant::now() + time);
        let entries = self.embeddings.search(finder, &view, query, limit, deadline).await;
        entries.iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>().join(" ")
    }
}

#[tokio::test(start_paused = true)]
async fn tools_without_a_common_word_are_found() {
    let fixture = EmbeddingFixture::complete().await;
    let check = async |query: &str, limit: usize, expected: &str| {
        assert_eq!(fixture.names(&["*"], query, limit, None).await, expected, "{query}");
    };
    check("Verabredung absagen", 1, "delete_event").await;
    check("meine Bestellung", 1, "list_orders").await;
    // Both rankings agree.
    check("delete an event in the calendar", 1, "delete_event").await;
    let lexical = fixture.harness.search_names(&["*"], "Verabredung absagen", 5).await;
    assert_eq!(lexical, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn caller_finds_only_what_it_may_see() {
    let fixture = EmbeddingFixture::complete().await;
    let found = fixture.names(&["shop/*"], "Verabredung absagen", 10, None).await;
    assert_eq!(found, "list_orders");
}

#[tokio::test(start_paused = true)]
async fn tools_are_embedded_in_batches_and_once() {
    let mut fixture = EmbeddingFixture::complete().await;
    let sizes: Vec<usize> = fixture.take_requests().iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 3, 2]);
    let tools = [
        ("list_orders", "Lists the orders of a customer.", "customer"),
        ("refund_order", "Pays back.", "id"),
    ];
    fixture.harness.put("shop", &tools);
    fixture.harness.publish();
    fixture.until(|fixture| fixture.embeddings.report().vectors == 9).await;
    assert_eq!(fixture.take_requests(), [["refund order (shop): Pays back.\nParameters: id"]]);
    fixture.harness.remove("gitlab");
    fixture.harness.publish();
    fixture.until(|fixture| fixture.embeddings.report().tools == 8).await;
    // Its vector is still there when it comes back.
    fixture.harness.put("gitlab", &[("create_issue", "Opens an issue in a project.", "project title")]);
    fixture.harness.publish();
    fixture.until(|fixture| fixture.embeddings.report().vectors == 9).await;
    assert_eq!(fixture.requests(), [[""; 0]; 0]);
}

/// The result is that of the words, and the endpoint is not asked again for a while.
#[tokio::test(start_paused = true)]
async fn faulty_endpoint_is_replaced_by_words() {
    for (behaviour, reason) in [
        (Behaviour::Fails, "hunter2 is hidden"),
        (Behaviour::Hangs, "no answer within 500 ms"),
        (Behaviour::OtherModel, "vectors have 5 dimensions instead of 4: the model has changed"),
    ] {
        let fixture = EmbeddingFixture::complete().await;
        fixture.behaviour.send_replace(behaviour);
        fixture.take_requests();
        let started = Instant::now();
        for _ in 0..3 {
            let found = fixture.names(&["*"], "reschedule a meeting", 1, None).await;
            assert_eq!(found, "move_event", "{behaviour:?}");
        }
        let time = started.elapsed();
        assert!(time <= Duration::from_secs(1), "{time:?}");
        let error = fixture.embeddings.report().query_error;
        assert_eq!(error.as_deref(), Some(reason));
        let queries = fixture.requests().iter().filter(|texts| texts[0] == "reschedule a meeting").count();
        assert_eq!(queries, 1, "{behaviour:?}");
        // It recovers.
        fixture.behaviour.send_replace(Behaviour::Answers);
        tokio::time::sleep(Duration::from_secs(60)).await;
        fixture.until(|fixture| fixture.embeddings.report().vectors == 8).await;
        assert_eq!(fixture.names(&["*"], "meine Bestellung", 1, None).await, "list_orders", "{behaviour:?}");
        assert_eq!(fixture.embeddings.report().query_error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_texts_of_tools_are_retried() {
    for behaviour in [Behaviour::Fails, Behaviour::Hangs, Behaviour::RefusesAll] {
        let fixture = EmbeddingFixture::start(behaviour, settings(), 1).await;
        fixture.until_after(Duration::from_secs(31), |report| report.tool_error.is_some()).await;
        assert_eq!(fixture.embeddings.report().vectors, 0, "{behaviour:?}");
        // Without vectors, no query leaves the gateway.
        let before = fixture.requests().len();
        assert_eq!(fixture.names(&["*"], "reschedule a meeting", 1, None).await, "move_event");
        assert_eq!(fixture.requests().len(), before, "{behaviour:?}");
        fixture.behaviour.send_replace(Behaviour::Answers);
        fixture.until_after(Duration::from_secs(600), |report| report.vectors == 8).await;
        assert_eq!(fixture.embeddings.report().tool_error, None);
        assert!(fixture.embeddings.requests().failed > 0, "{behaviour:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_text_does_not_affect_others() {
    let refusing = Behaviour::RefusesText("Reschedules");
    let fixture = EmbeddingFixture::start(refusing, settings(), 3).await;
    fixture.until(|fixture| fixture.embeddings.report().vectors == 7).await;
    assert_eq!(fixture.embeddings.report().tool_error, None);
    let found = fixture.names(&["*"], "reschedule a meeting", 8, None).await;
    assert!(found.contains("move_event"), "{found}");
}

#[tokio::test(start_paused = true)]
async fn vectors_are_bounded_in_size() {
    let bytes = 5 * (4 * size_of::<f32>() + 128);
    let fixture =
        EmbeddingFixture::start(Behaviour::Answers, EmbeddingSettings { bytes, ..settings() }, 1).await;
    fixture.until(|fixture| fixture.embeddings.report().tools == 8).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let report = fixture.embeddings.report();
    assert!((3..=5).contains(&report.vectors), "{report:?}");
    // The others are found by words.
    for query in ["reschedule a meeting", "opens an issue in a project", "orders of a customer"] {
        assert_ne!(fixture.names(&["*"], query, 3, None).await, "", "{query}");
    }
}

/// A call that has little time left is not spent on an endpoint.
#[tokio::test(start_paused = true)]
async fn half_of_the_time_of_a_call_is_left() {
    let fixture = EmbeddingFixture::complete().await;
    fixture.behaviour.send_replace(Behaviour::Hangs);
    let started = Instant::now();
    let limit = Some(Duration::from_millis(200));
    assert_eq!(fixture.names(&["*"], "reschedule a meeting", 1, limit).await, "move_event");
    let time = started.elapsed();
    assert!((Duration::from_millis(90)..=Duration::from_millis(110)).contains(&time), "{time:?}");
    assert_eq!(fixture.embeddings.report().query_error, None);
}

#[tokio::test(start_paused = true)]
async fn concurrent_queries_are_bounded() {
    let fixture = EmbeddingFixture::complete().await;
    fixture.behaviour.send_replace(Behaviour::Hangs);
    fixture.take_requests();
    let finished = AtomicUsize::new(0);
    let search = async || {
        assert_eq!(fixture.names(&["*"], "reschedule a meeting", 1, None).await, "move_event");
        finished.fetch_add(1, Ordering::Relaxed);
    };
    futures_util::future::join3(search(), search(), search()).await;
    assert_eq!((finished.into_inner(), fixture.requests().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn long_query_is_cut() {
    let fixture = EmbeddingFixture::complete().await;
    fixture.take_requests();
    fixture.names(&["*"], &"é".repeat(100_000), 1, None).await;
    let lengths: Vec<usize> = fixture.requests().iter().map(|texts| texts[0].len()).collect();
    assert_eq!(lengths, [2000]);
}

impl EmbeddingFixture {
    /// Waits for a state for this time at most.
    async fn until_after(&self, most: Duration, is_reached: impl Fn(&EmbeddingReport) -> bool) {
        let started = Instant::now();
        while !is_reached(&self.embeddings.report()) {
            assert!(started.elapsed() < most, "{:?}", self.embeddings.report());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
