//! HTTP servers that reflect their requests, and one that only listens.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A server that runs until the test process exits.
pub(crate) struct ReflectingServer {
    pub(crate) address: SocketAddr,
    /// The bodies of all requests.
    pub(crate) received: Arc<Mutex<Vec<u8>>>,
}

/// A request: its path, and its full text.
struct EchoedRequest {
    path: String,
    body: Value,
    whole: String,
}

impl ReflectingServer {
    /// Starts a server that responds with [`answer`].
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let seen = received.clone();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let seen = seen.clone();
                thread::spawn(move || serve(socket, &seen));
            }
        });
        Self { address, received }
    }
}

fn serve(mut socket: TcpStream, seen: &Mutex<Vec<u8>>) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    while let Some(request) = read(&mut reader, seen) {
        let (status, body) = answer(&request);
        let head = format!("HTTP/1.1 {status} said\r\nContent-Type: application/json\r\n");
        write!(socket, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    }
    None
}

fn read(reader: &mut impl BufRead, seen: &Mutex<Vec<u8>>) -> Option<EchoedRequest> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        reader.read_line(&mut head).ok().filter(|length| *length > 0)?;
        let line = head[start..].trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.lock().unwrap().extend_from_slice(&body);
    let path = head.split(' ').nth(1)?.to_owned();
    let whole = head.clone() + &String::from_utf8_lossy(&body);
    Some(EchoedRequest { path, body: serde_json::from_slice(&body).unwrap_or_default(), whole })
}

/// Returns a status and a body. The first segment of the path selects the failure.
fn answer(request: &EchoedRequest) -> (u16, String) {
    let (id, method) = (&request.body["id"], request.body["method"].as_str().unwrap_or_default());
    let error =
        |message: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message}});
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let hello = |version: &Value| {
        let info = json!({"name": request.whole, "version": "1"});
        result(json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}))
    };
    let mode = request.path.split(['/', '?']).nth(1).unwrap_or_default();
    let body = match (mode, method) {
        ("mcp", "initialize") => hello(&request.body["params"]["protocolVersion"]),
        ("mcp", "tools/list") => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            result(json!({"tools": [tool("over_http_ok"), tool("over_http_fail")]}))
        }
        ("mcp", "tools/call") if request.body["params"]["name"] == "over_http_ok" => {
            result(json!({"content": [{"type": "text", "text": "ok"}]}))
        }
        ("mcp", "notifications/initialized") => return (202, String::new()),
        ("mcp" | "refusing", _) => error(&format!("go away: {}", request.whole)),
        ("strange", "initialize") => hello(&json!(request.whole)),
        ("strange", _) => error("what?"),
        ("closed", _) => return (401, request.whole.clone()),
        ("quoting", _) => return (403, json!({"error": {"message": request.whole}}).to_string()),
        ("broken", _) => return (500, request.whole.clone()),
        ("garbage", _) => return (200, request.whole.clone()),
        ("slow", _) => {
            thread::sleep(std::time::Duration::from_secs(60));
            return (200, "{}".to_owned());
        }
        ("hidden", _) => json!({"password": request.whole, "name": "n"}),
        _ => json!({"ok": true}),
    };
    (200, body.to_string())
}
