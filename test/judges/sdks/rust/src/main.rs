//! A client of rmcp, told by lines on stdin what to do: connect, list, call, count, cancel, or ask with a request. It prints
//! a line of JSON for each. Arguments: `default` or `auto` for the lifecycle; `mcp` or `stdio`; the URL or the server's
//! command; the key; the client's name.

use rmcp::{
    ClientHandler, ClientServiceExt, RoleClient, ServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, Implementation, ProgressNotificationParam,
        ProtocolVersion, ServerResult,
    },
    service::{ClientLifecycleMode, NotificationContext, PeerRequestOptions, RunningService},
    transport::{IntoTransport, StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use std::{
    error::Error,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// The limit of a call; the SDK has none of its own.
const CALL_TIME: Duration = Duration::from_secs(15);

#[derive(Clone)]
struct Handler {
    name: String,
    progress: Arc<AtomicUsize>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new(self.name.clone(), "1.0.0");
        info
    }
    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.fetch_add(1, Ordering::SeqCst);
    }
}

type Client = RunningService<RoleClient, Handler>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, lifecycle, endpoint, url, key, name] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("wrong arguments".into());
    };
    let handler = Handler { name: name.clone(), progress: Arc::new(AtomicUsize::new(0)) };
    let mut client: Option<Client> = None;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(step) = lines.next_line().await? {
        let answer = if step == "connect" {
            match connect(handler.clone(), lifecycle, endpoint, url, key).await {
                Ok(connected) => {
                    let revision = connected.peer_info().map(|server| server.protocol_version.to_string());
                    client = Some(connected);
                    Ok(json!({ "revision": revision }))
                }
                Err(error) => Err(error),
            }
        } else {
            match &client {
                Some(client) => run(client, &step, name, &handler.progress).await,
                None => Err("not connected".into()),
            }
        };
        println!("{}", answer.unwrap_or_else(|error| json!({ "error": error.to_string() })));
    }
    Ok(())
}

async fn connect(
    handler: Handler,
    lifecycle: &str,
    endpoint: &str,
    url: &str,
    key: &str,
) -> Result<Client, Box<dyn Error>> {
    if endpoint == "stdio" {
        let words = url.split(' ').collect::<Vec<_>>();
        let mut server =
            Command::new(words[0]).args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = (server.stdout.take().ok_or("no stdout")?, server.stdin.take().ok_or("no stdin")?);
        return serve(handler, lifecycle, pipes).await;
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(key);
    serve(handler, lifecycle, StreamableHttpClientTransport::from_config(config)).await
}

async fn serve<T, E, A>(handler: Handler, lifecycle: &str, transport: T) -> Result<Client, Box<dyn Error>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    if lifecycle == "auto" {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let mode = ClientLifecycleMode::Auto { preferred_versions, legacy_version: None };
        return Ok(handler.serve_with_lifecycle(transport, mode).await?);
    }
    Ok(handler.serve(transport).await?)
}

async fn run(client: &Client, step: &str, name: &str, progress: &AtomicUsize) -> Result<Value, Box<dyn Error>> {
    if step == "list" {
        return Ok(json!({ "tools": client.list_tools(None).await?.tools.len() }));
    }
    if let Some(asked) = step.strip_prefix("ask ") {
        let result = client.send_request(serde_json::from_str(asked)?).await?;
        return Ok(json!({ "result": result }));
    }
    progress.store(0, Ordering::SeqCst);
    let tool = match step {
        "count" => "count",
        "cancel" => "hold",
        _ => "echo",
    };
    let arguments = json!({ "client": name }).as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut options = PeerRequestOptions::no_options();
    options.timeout = Some(CALL_TIME);
    let called = client.send_cancellable_request(request, options).await?;
    if step == "cancel" {
        tokio::time::sleep(Duration::from_millis(500)).await;
        called.cancel(None).await?;
        return Ok(json!({}));
    }
    let ServerResult::CallToolResult(result) = called.await_response().await? else {
        return Err("another result".into());
    };
    // The SDK starts a task for each notification, so the last progress can come after the answer.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let content = serde_json::to_value(&result.content[0])?;
    Ok(json!({ "text": content["text"], "progress": progress.load(Ordering::SeqCst) }))
}
