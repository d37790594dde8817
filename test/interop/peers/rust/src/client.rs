//! The client of the official Rust SDK; see clients/exercise.mjs. The mode is auto, legacy or discover.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Handler {
    progress: Arc<AtomicUsize>,
    updated: Arc<Mutex<Option<String>>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = ClientCapabilities::builder().enable_elicitation().build();
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let form = serde_json::to_value(request).unwrap_or_default();
        let members = form["requestedSchema"]["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let content: serde_json::Map<String, Value> = members
            .keys()
            .map(|key| (key.clone(), json!("Ada")))
            .collect();
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)))
    }

    async fn on_progress(
        &self,
        _params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        *self.updated.lock().unwrap() = Some(params.uri);
    }
}

fn tell(step: &str, seen: anyhow::Result<Value>) {
    let line = match seen {
        Ok(saw) => json!({ "step": step, "saw": saw }),
        Err(error) => json!({ "step": step, "error": error.to_string() }),
    };
    println!("@step {line}");
}

type Client = RunningService<RoleClient, Handler>;

async fn call(client: &Client, words: &Value) -> anyhow::Result<CallToolResult> {
    let mut params =
        CallToolRequestParams::new(words["tool"].as_str().unwrap_or_default().to_owned());
    params.arguments = words["args"].as_object().cloned();
    Ok(client.call_tool(params).await?)
}

fn text(result: &CallToolResult) -> String {
    let parts = serde_json::to_value(&result.content).unwrap_or_default();
    let texts = parts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join(" ")
}

// The legacy era's way to subscribe is deprecated.
#[allow(deprecated)]
async fn take(client: &Client, step: &str, words: &Value, modern: bool) -> anyhow::Result<Value> {
    let uri = words["uri"].as_str().unwrap_or_default().to_owned();
    match step {
        "list" => {
            let tools = client.list_all_tools().await?;
            Ok(json!(
                tools.iter().map(|tool| &tool.name).collect::<Vec<_>>()
            ))
        }
        "read" => {
            let result = client
                .read_resource(ReadResourceRequestParams::new(uri))
                .await?;
            Ok(serde_json::to_value(&result.contents)?[0]["text"].clone())
        }
        "error" => match call(client, words).await {
            Ok(result) if result.is_error == Some(true) => Ok(json!(text(&result))),
            Ok(result) => anyhow::bail!("no error: {}", text(&result)),
            Err(error) => Ok(json!(error.to_string())),
        },
        "progress" => {
            client.service().progress.store(0, Ordering::Relaxed);
            let result = call(client, words).await?;
            Ok(
                json!({ "count": client.service().progress.load(Ordering::Relaxed), "text": text(&result) }),
            )
        }
        "change" if modern => {
            let filter = SubscriptionFilter::builder()
                .resource_subscription(uri)
                .build();
            let mut subscription = client.listen(filter).await?;
            call(client, words).await?;
            let change =
                tokio::time::timeout(Duration::from_secs(10), subscription.next()).await??;
            Ok(json!(serde_json::to_string(&change)?))
        }
        "change" => {
            client.subscribe(SubscribeRequestParams::new(uri)).await?;
            for _ in 0..5 {
                call(client, words).await?;
                tokio::time::sleep(Duration::from_millis(800)).await;
                if let Some(uri) = client.service().updated.lock().unwrap().clone() {
                    return Ok(json!(uri));
                }
            }
            anyhow::bail!("no change was told")
        }
        _ => Ok(json!(text(&call(client, words).await?))),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let peer: Value = serde_json::from_str(&std::env::var("PEER")?)?;
    let url = peer["url"].as_str().unwrap_or_default().to_owned();
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match peer["mode"].as_str() {
        Some("legacy") => ClientLifecycleMode::Initialize,
        Some("discover") => ClientLifecycleMode::Discover { preferred_versions },
        _ => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: None,
        },
    };
    let modern = mode != ClientLifecycleMode::Initialize;
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = match Handler::default()
        .serve_with_lifecycle(transport, mode)
        .await
    {
        Ok(client) => client,
        Err(error) => {
            tell("connect", Err(error.into()));
            return Ok(());
        }
    };
    tell("connect", Ok(json!("connected")));
    for step in peer["steps"].as_array().into_iter().flatten().skip(1) {
        let step = step.as_str().unwrap_or_default();
        let taken = tokio::time::timeout(
            Duration::from_secs(20),
            take(&client, step, &peer["words"][step], modern),
        );
        tell(
            step,
            taken
                .await
                .unwrap_or_else(|_| Err(anyhow::anyhow!("nothing within 20 s"))),
        );
    }
    client.cancel().await?;
    Ok(())
}
