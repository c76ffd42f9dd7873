//! nginx as a minimal proxy: the baseline of the gateway.

use std::net::SocketAddr;
use std::path::Path;

/// A configuration that forwards all requests from one port to another. Connections are kept open on both sides and
/// nothing is buffered or logged, so that nginx does as little as a proxy can.
pub(super) fn configuration(
    folder: &Path,
    workers: usize,
    listen: SocketAddr,
    upstream: SocketAddr,
) -> String {
    let folder = folder.display();
    format!(
        "daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_max_body_size 0;
    tcp_nodelay on;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream echo {{
        server {upstream};
        keepalive 128;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://echo;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
            proxy_request_buffering off;
        }}
    }}
}}
"
    )
}
