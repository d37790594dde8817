//! The fixture on the official Rust SDK: server http|stdio PORT

use std::{sync::LazyLock, time::Duration};

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt,
    handler::server::{tool::InputResponses, wrapper::Parameters},
    model::*,
    service::{RequestContext, SubscriptionContext},
    tool, tool_handler, tool_router,
    transport::{
        stdio,
        streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
    },
};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast;

const NOTE: &str = "note://today";

/// Told of each change; those who listen in the modern era hear of it here.
static TOUCHED: LazyLock<broadcast::Sender<()>> = LazyLock::new(|| broadcast::channel(16).0);

#[derive(Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}
rmcp::elicit_safe!(Name);

#[derive(Clone)]
struct Fixture;

fn say(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

#[tool_router]
impl Fixture {
    #[tool(description = "Adds")]
    async fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Fails")]
    async fn fail(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("It failed on purpose")])
    }

    #[tool(description = "Takes a while")]
    async fn slow(&self, meta: RequestMetaObject, peer: Peer<RoleServer>) -> String {
        for step in 1..=3 {
            if let Some(token) = meta.get_progress_token() {
                let progress =
                    ProgressNotificationParam::new(token, f64::from(step)).with_total(3.0);
                let _ = peer.notify_progress(progress).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        "slept".into()
    }

    #[tool(description = "Asks")]
    async fn ask(
        &self,
        peer: Peer<RoleServer>,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let known = responses.as_ref().and_then(|all| all.get("name"));
        if let Some(name) = known.and_then(|answer| answer["content"]["name"].as_str()) {
            return Ok(say(format!("Hello {name}")).into());
        }
        // Only the legacy era can be asked in the middle of a call.
        if let Ok(Some(Name { name })) = peer.elicit::<Name>("Who?").await {
            return Ok(say(format!("Hello {name}")).into());
        }
        let requested_schema = serde_json::from_value(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        }))
        .expect("a schema");
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Who?".into(),
            requested_schema,
        };
        let mut requests = InputRequests::new();
        requests.insert(
            "name".into(),
            InputRequest::Elicitation(ElicitRequest::new(form)),
        );
        Ok(InputRequiredResult::new(Some(requests), None).into())
    }

    #[tool(description = "Tells of a change")]
    async fn touch(&self, peer: Peer<RoleServer>) -> String {
        let _ = TOUCHED.send(());
        let _ = peer
            .notify_resource_updated(ResourceUpdatedNotificationParam::new(NOTE))
            .await;
        "touched".into()
    }
}

#[tool_handler]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text("Today", request.uri)]).into())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut touched = TOUCHED.subscribe();
        loop {
            tokio::select! {
                _ = context.cancelled() => return Ok(()),
                Ok(()) = touched.recv() => {
                    let _ = context.sink().notify_resource_updated(NOTE).await;
                }
            }
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "stdio" {
        Fixture.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    let service: StreamableHttpService<Fixture, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Fixture), Default::default(), Default::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{}", args[2])).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
