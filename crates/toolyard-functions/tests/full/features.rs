//! Environment of handlers.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolyard_functions::code::SourceLanguage;
use toolyard_functions::runtime::{FetchRequest, FetchResponse, FunctionRuntime, HttpFetcher};

use crate::setup::{answer, code, options, run, runtimes};

#[tokio::test]
async fn all_languages_have_the_same_context() {
    let sources = [
        "def cortexone_handler(event, context): return context",
        "function cortexone_handler(event, context) { return context }",
        "function cortexone_handler(event, context) return context end",
    ];
    let runtimes = runtimes().await;
    for (language, source) in SourceLanguage::ALL.into_iter().zip(sources) {
        let context_json = answer(run(&runtimes, &Arc::new(code(language, source)), "{}").await);
        let mut context_json: Value = serde_json::from_str(&context_json).unwrap();
        let left = context_json["remaining_ms"].take().as_u64().unwrap();
        assert!((1..=20_000).contains(&left), "{left}");
        let deadline = context_json["deadline"].take();
        assert!(toolyard_core::timestamp::parse(deadline.as_str().unwrap()).is_some(), "{deadline}");
        let expected = json!({
            "function_id": "echo", "version": "1.2.0", "request_id": "r-1",
            "deadline": null, "remaining_ms": null,
        });
        assert_eq!(context_json, expected, "{language:?}");
    }
}

#[tokio::test]
async fn environment_is_that_of_the_version() {
    let sources = [
        "import os\ndef cortexone_handler(event, context): return os.environ['TOKEN']",
        "function cortexone_handler() { return process.env.TOKEN }",
        "function cortexone_handler() return process.env.TOKEN end",
    ];
    let runtimes = runtimes().await;
    for (language, source) in SourceLanguage::ALL.into_iter().zip(sources) {
        let mut code = code(language, source);
        code.environment.push(("TOKEN".into(), "s\u{e9}cret \"".into()));
        assert_eq!(answer(run(&runtimes, &Arc::new(code), "{}").await), "\"s\u{e9}cret \\\"\"");
    }
}

#[tokio::test]
async fn python_imports_files_and_packages() {
    let packages = tempfile::tempdir().unwrap();
    std::fs::write(packages.path().join("installed.py"), "NAME = 'installed'").unwrap();
    let source = "import installed, parts.words as words\n\
                  def cortexone_handler(event, context):\n    \
                  open('written', 'w').write('x')\n    \
                  return [installed.NAME, words.WORD, open('parts/data.csv').read(), __file__.count('/') > 1]";
    let mut code = code(SourceLanguage::Python, source);
    code.files.push(("parts/words.py".into(), "WORD = 'word'".into()));
    code.files.push(("parts/data.csv".into(), "1,2".into()));
    code.packages = Some(packages.path().to_owned());
    let answered = answer(run(&runtimes().await, &Arc::new(code), "{}").await);
    assert_eq!(answered, r#"["installed","word","1,2",true]"#);
}

#[tokio::test]
async fn file_outside_the_folder_is_refused() {
    let runtimes = runtimes().await;
    for name in ["../x.py", "/tmp/x.py", "a/../../x.py", "./../x"] {
        let mut code = code(SourceLanguage::Python, "def cortexone_handler(event, context): return 1");
        code.key = name.into();
        code.files.push((name.to_owned(), "".into()));
        let error = run(&runtimes, &Arc::new(code), "{}").await.unwrap_err().to_string();
        assert!(error.contains("invalid file name"), "{error}");
    }
}

/// Responds with the request.
#[derive(Default)]
struct Mirror(Mutex<Vec<FetchRequest>>);

impl HttpFetcher for Mirror {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, String>> {
        let answer = match &*request.url {
            "https://refused/" => Err("refused by name".to_owned()),
            _ => Ok(FetchResponse {
                status: 201,
                status_text: "Created".to_owned(),
                headers: vec![("x-method".to_owned(), request.method.clone())],
                body: json!({ "got": request.body }).to_string(),
            }),
        };
        self.0.lock().unwrap().push(request);
        Box::pin(std::future::ready(answer))
    }
}

const FETCHING: [(SourceLanguage, &str); 2] = [
    (
        SourceLanguage::JavaScript,
        "const early = fetch('https://early/').status;
        function cortexone_handler(event) {
            const r = fetch(event.url, { method: 'POST', headers: { 'x-a': 'b' }, body: 'text' });
            return [early, r.status, r.statusText, r.ok, r.headers['x-method'], r.body, r.text(), r.json().got];
        }",
    ),
    (
        SourceLanguage::Lua,
        "local early = fetch('https://early/').status
        function cortexone_handler(event)
            local r = fetch(event.url, { method = 'POST', headers = { ['x-a'] = 'b' }, body = 'text' })
            return { early, r.status, r.statusText, r.ok, r.headers['x-method'], r.body, r:text(), r.json().got }
        end",
    ),
];

#[tokio::test]
async fn fetch_requests_are_sent_by_the_host() {
    let mirror = Arc::new(Mirror::default());
    let mut options = options().await;
    options.fetch = Some(mirror.clone());
    let runtimes = FunctionRuntime::new(options);
    for (language, source) in FETCHING {
        let mut code = code(language, source);
        code.network = true;
        let code = Arc::new(code);
        let answered = answer(run(&runtimes, &code, r#"{"url":"https://a.example/"}"#).await);
        let body = r#""{\"got\":\"text\"}""#;
        assert_eq!(answered, format!(r#"[201,201,"Created",true,"POST",{body},{body},"text"]"#));
        let last = mirror.0.lock().unwrap().pop().unwrap();
        assert_eq!((&*last.url, &*last.method), ("https://a.example/", "POST"));
        assert_eq!((last.headers, last.body), (vec![("x-a".into(), "b".into())], Some("text".into())));
        let error = run(&runtimes, &code, r#"{"url":"https://refused/"}"#).await.unwrap_err().to_string();
        assert!(error.contains("fetch: refused by name"), "{error}");
    }
}

#[tokio::test]
async fn code_loads_without_a_call() {
    let runtimes = runtimes().await;
    for (language, source) in FETCHING {
        let error = runtimes.load(&Arc::new(code(language, source))).await.unwrap_err().to_string();
        assert!(error.contains("fetch is not enabled for this version"), "{error}");
    }
    let good = Arc::new(code(SourceLanguage::Lua, "function cortexone_handler() return 1 end"));
    runtimes.load(&good).await.unwrap();
    let info = runtimes.info();
    let info: Vec<_> = info.iter().map(|info| (&*info.code, info.running, info.idle)).collect();
    assert!(info.contains(&(&*good.key, 0, 1)), "{info:?}");
}
