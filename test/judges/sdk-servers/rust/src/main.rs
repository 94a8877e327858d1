//! The same small server by rmcp: without arguments on STDIO, with an address and `http` or `stateless` over Streamable HTTP.
use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    handler::server::wrapper::Parameters,
    model::*,
    schemars,
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Wait {
    count: u32,
    gap_ms: u64,
}

#[derive(Clone)]
struct Server;

#[tool_router]
impl Server {
    #[tool(description = "Says it again")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool]
    fn fail(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("it failed")])
    }

    #[tool]
    async fn wait(
        &self,
        Parameters(Wait { count, gap_ms }): Parameters<Wait>,
        context: RequestContext<RoleServer>,
    ) -> String {
        for done in 1..=count {
            tokio::time::sleep(Duration::from_millis(gap_ms)).await;
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, done.into());
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        "waited".into()
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_instructions("Echo.")
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("test://note", "note")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text("a note", request.uri)]).into())
    }
}

#[tokio::main]
async fn main() {
    let Some(address) = std::env::args().nth(1) else {
        let running = Server.serve(rmcp::transport::stdio()).await.expect("a client");
        running.waiting().await.expect("an orderly end");
        return;
    };
    let has_sessions = std::env::args().nth(2).as_deref() == Some("http");
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(has_sessions);
    let service: StreamableHttpService<Server, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Server), Default::default(), config);
    let listener = tokio::net::TcpListener::bind(address).await.expect("a free port");
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.expect("a server");
}
