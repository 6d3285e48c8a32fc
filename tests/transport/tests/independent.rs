//! Client that shares no code with this workspace: HTTP/2 and TLS of Node.js (nghttp2 and OpenSSL).
//!
//! The program `node` must be installed, as for the tests with other implementations.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::Change;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_transport::http::client::{HttpEndpoint, HyperClient};
use mcp_exact_transport::http::server::{
    HttpListener, HttpServerOptions, HttpService, ListenOptions, rustls,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Node.js script that starts a session over HTTP/2, makes concurrent calls on one connection, and reads the event
/// stream until a change is announced.
const HTTP2_SCRIPT: &str = r#"
const [url, ca] = process.argv.slice(1);
const http2 = require('http2');
const options = ca ? { ca: require('fs').readFileSync(ca) } : {};
const client = http2.connect(url, options);
client.on('error', (error) => { console.error(error); process.exit(1); });
const send = (method, headers, body) => client.request({
  ':method': method, ':path': '/mcp', 'content-type': 'application/json',
  accept: 'application/json, text/event-stream', ...headers,
}, { endStream: false }).end(body);
const post = (headers, body) => new Promise((done, failed) => {
  const stream = send('POST', headers, JSON.stringify({ jsonrpc: '2.0', ...body }));
  let head, text = '';
  stream.setEncoding('utf8');
  stream.on('response', (headers) => { head = headers; });
  stream.on('data', (data) => { text += data; });
  stream.on('end', () => done([head, text]));
  stream.on('error', failed);
});
const main = async () => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'node', version: '1' } };
  const [head] = await post({}, { id: 0, method: 'initialize', params });
  const session = { 'mcp-session-id': head['mcp-session-id'] };
  await post(session, { method: 'notifications/initialized' });
  const calls = Array.from({ length: 50 }, (_, n) => post(session, {
    id: n + 1, method: 'tools/call', params: { name: 'echo', arguments: { text: `text ${n}` } },
  }));
  const answers = await Promise.all(calls);
  const right = answers.filter(([, text], n) => JSON.parse(text).result.content[0].text === `text ${n}`);
  const events = send('GET', session);
  events.setEncoding('utf8');
  let seen = '';
  for await (const data of events) {
    seen += data;
    if (seen.includes('list_changed')) break;
  }
  console.log(`${client.alpnProtocol} ${right.length}`);
  client.destroy();
};
main().catch((error) => { console.error(error); process.exit(1); });
"#;

/// Node.js script that sends a request over HTTP/1.1 with TLS.
const HTTPS_SCRIPT: &str = r#"
const [url, ca] = process.argv.slice(1);
const https = require('https');
const options = { method: 'POST', ca: require('fs').readFileSync(ca), ALPNProtocols: ['http/1.1'], headers: {
  'content-type': 'application/json', accept: 'application/json, text/event-stream' } };
const request = https.request(`${url}/mcp`, options, (response) => {
  let text = '';
  const protocol = response.socket.alpnProtocol;
  response.setEncoding('utf8');
  response.on('data', (data) => { text += data; });
  response.on('end', () => {
    console.log(`${protocol} ${response.httpVersion} ${JSON.parse(text).result.protocolVersion}`);
    process.exit(0);
  });
});
request.on('error', (error) => { console.error(error); process.exit(1); });
request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
  protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'node', version: '1' } } }));
"#;

/// Node.js script that requests compression of a long response, a short response and an event stream.
const GZIP_SCRIPT: &str = r#"
const [url] = process.argv.slice(1);
const http = require('http');
const zlib = require('zlib');
const send = (method, headers, body) => new Promise((done, failed) => {
  const request = http.request(url, { method, headers: {
    'content-type': 'application/json', accept: 'application/json, text/event-stream', 'accept-encoding': 'gzip', ...headers,
  } }, done);
  request.on('error', failed);
  request.end(body && JSON.stringify({ jsonrpc: '2.0', ...body }));
});
const whole = async (response) => {
  const parts = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts);
};
const main = async () => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'node', version: '1' } };
  const begun = await send('POST', {}, { id: 0, method: 'initialize', params });
  await whole(begun);
  const session = { 'mcp-session-id': begun.headers['mcp-session-id'] };
  await whole(await send('POST', session, { method: 'notifications/initialized' }));
  const call = (text) => send('POST', session, { id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text } } });
  const long = await call('long '.repeat(2000));
  const bytes = await whole(long);
  const text = JSON.parse(zlib.gunzipSync(bytes)).result.content[0].text;
  const short = await call('short');
  const events = await send('GET', session);
  console.log(long.headers['content-encoding'], long.headers.vary, bytes.length < 1000, text.length,
    short.headers['content-encoding'], JSON.parse(await whole(short)).result.content[0].text,
    events.headers['content-type'], events.headers['content-encoding']);
  process.exit(0);
};
main().catch((error) => { console.error(error); process.exit(1); });
"#;

/// Runs a script with Node.js and returns its standard output.
async fn node(script: &'static str, arguments: Vec<String>) -> String {
    let run = tokio::task::spawn_blocking(move || {
        let output = Command::new("node")
            .args(["-e", script, "--"])
            .args(arguments)
            .output()
            .expect("install Node.js 20: it is the independent client of this test");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    let limit = Duration::from_secs(60);
    let run = tokio::time::timeout(limit, run).await;
    run.expect("in time").expect("no panic")
}

/// Announces a change every 20 milliseconds, because the time at which the script opens its stream is unknown.
async fn announce(service: &HttpService) {
    loop {
        service.publish(&Change::Tools);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A client can use HTTP/2 without TLS and without an upgrade.
#[tokio::test]
async fn http2_is_served_with_prior_knowledge() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let printed = tokio::select! {
        printed = node(HTTP2_SCRIPT, vec![server.url("")]) => printed,
        () = announce(&server.service) => unreachable!("it goes on for ever"),
    };
    assert_eq!(printed, "h2c 50");
}

/// Self-signed certificate with its private key.
struct Certificate {
    /// Certificate in DER encoding.
    der: CertificateDer<'static>,
    /// Private key of the certificate.
    key: PrivateKeyDer<'static>,
    /// Certificate in PEM encoding.
    pem: String,
}

/// Creates a self-signed certificate for `localhost`.
fn certificate() -> Certificate {
    let names = vec!["localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    Certificate {
        der: made.cert.der().clone(),
        key: PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()),
        pem: made.cert.pem(),
    }
}

/// Returns the cryptography provider of rustls.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Over TLS, a client selects HTTP/1.1 or HTTP/2 by ALPN.
#[tokio::test]
async fn tls_clients_choose_their_protocol() {
    let certificate = certificate();
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der.clone()], certificate.key)
        .expect("a key");
    let options = HttpServerOptions::default();
    let service = HttpService::new(echo::server_settings(), Arc::new(echo::handle), options);
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("bound");
    let listen = ListenOptions {
        header_timeout: Duration::from_secs(5),
        ..ListenOptions::default()
    };
    let listener = listener.options(listen).tls(Arc::new(config));
    let port = listener.local_addr().expect("an address").port();
    let serving = tokio::spawn(listener.serve(service.clone(), std::future::pending()));
    let url = format!("https://localhost:{port}");

    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, &certificate.pem).expect("written");
    let arguments = vec![url.clone(), file.display().to_string()];
    let printed = tokio::select! {
        printed = node(HTTP2_SCRIPT, arguments.clone()) => printed,
        () = announce(&service) => unreachable!("it goes on for ever"),
    };
    assert_eq!(printed, "h2 50");
    assert_eq!(
        node(HTTPS_SCRIPT, arguments).await,
        "http/1.1 1.1 2025-11-25"
    );

    // Our client, which trusts this certificate, and one that trusts those of the system alone.
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der).expect("a certificate");
    let trusting = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let patience = Duration::from_secs(5);
    for (client, is_trusting) in [
        (HyperClient::with_tls(patience, trusting), true),
        (HyperClient::default(), false),
    ] {
        for revision in ["2026-07-28", "2025-11-25"] {
            let endpoint = HttpEndpoint::new(&format!("{url}/mcp")).expect("a URL");
            let endpoint = endpoint.client(Arc::new(client.clone()));
            let settings = echo::client_settings(revision);
            let (handle, driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
            if is_trusting {
                echo::use_all(&handle, revision).await
            } else {
                let error = handle.ready().await.expect_err("not trusted");
                assert!(error.to_string().contains("certificate"), "{error}");
            }
            handle.close();
            driver.await.expect("driver");
        }
    }
    serving.abort();
}

/// Long responses are compressed if the client accepts gzip; short responses and event streams are not compressed.
#[tokio::test]
async fn long_answers_are_compressed() {
    let listen = ListenOptions {
        compression: true,
        ..ListenOptions::default()
    };
    let server = TestServer::start_with(HttpServerOptions::default(), listen).await;
    let printed = node(GZIP_SCRIPT, vec![server.url("/")]).await;
    assert_eq!(
        printed.trim(),
        "gzip accept-encoding true 10000 undefined short text/event-stream undefined"
    );
}
