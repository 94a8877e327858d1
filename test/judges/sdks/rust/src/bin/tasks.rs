//! A client of rmcp that declares tasks (2026-07-28). Arguments: the URL, and the tools to call, which need no arguments. It
//! follows each task to its end, answers its questions, and prints a line of JSON for each tool.

use rmcp::{
    ClientHandler, ClientServiceExt, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ClientConfig, ExtensionCapabilities, GetTaskParams, Implementation,
        ProtocolVersion, UpdateTaskParams,
    },
    service::{ClientLifecycleMode, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use std::{error::Error, time::Duration};

#[derive(Clone)]
struct Handler;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("rmcp-tasks", "1.0.0");
        info.capabilities.elicitation = Some(Default::default());
        info.capabilities.extensions =
            Some(ExtensionCapabilities::from([("io.modelcontextprotocol/tasks".to_owned(), Default::default())]));
        info
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = std::env::args().collect::<Vec<_>>();
    let transport = StreamableHttpClientTransport::from_uri(arguments[1].clone());
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = ClientLifecycleMode::Auto { preferred_versions, legacy_version: None };
    let client = Handler.serve_with_lifecycle(transport, mode).await?;
    for tool in &arguments[2..] {
        let line = follow(&client, tool).await.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!("{line}");
    }
    Ok(())
}

async fn follow(client: &RunningService<RoleClient, Handler>, tool: &str) -> Result<Value, Box<dyn Error>> {
    let CallToolResponse::Task(created) = client.call_tool_once(CallToolRequestParams::new(tool.to_owned())).await?
    else {
        return Err("no task".into());
    };
    let id = created.task.task_id;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let task = serde_json::to_value(client.get_task(GetTaskParams::new(id.clone())).await?)?;
        match task["status"].as_str() {
            Some("working") => {}
            Some("input_required") => {
                let questions = task["inputRequests"].as_object().cloned().unwrap_or_default();
                let answer = json!({ "action": "accept", "content": { "confirm": true } });
                let answers = questions.keys().map(|key| (key.clone(), answer.clone())).collect::<serde_json::Map<_, _>>();
                let update = json!({ "taskId": id, "inputResponses": answers });
                client.update_task(serde_json::from_value::<UpdateTaskParams>(update)?).await?;
            }
            status => {
                let text = &task["result"]["content"][0]["text"];
                return Ok(json!({ "status": status, "text": text, "error": task["error"]["message"] }));
            }
        }
    }
}
