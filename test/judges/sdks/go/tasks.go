package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// A client of mcp-go that asks for tasks (2025-11-25) and collects their results. Prints a line of JSON for each tool.
func runTasks(url string, tools []string) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	out := json.NewEncoder(os.Stdout)
	of, err := client.NewStreamableHttpClient(url)
	if err == nil {
		start := mcp.InitializeRequest{}
		start.Params.ClientInfo = mcp.Implementation{Name: "mcp-go-tasks", Version: "1.0.0"}
		start.Params.ProtocolVersion = "2025-11-25"
		_, err = of.Initialize(ctx, start)
	}
	for _, tool := range tools {
		answer := map[string]any{}
		if err == nil {
			answer, err = followTask(ctx, of, tool)
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		out.Encode(answer)
	}
}

func followTask(ctx context.Context, of *client.Client, tool string) (map[string]any, error) {
	call := mcp.CallToolRequest{}
	call.Params.Name = tool
	call.Params.Task = &mcp.TaskParams{}
	// The SDK wants content in the answer, which names a task instead. The list has it.
	_, failed := of.CallTool(ctx, call)
	listed, err := of.ListTasks(ctx, mcp.ListTasksRequest{})
	if err != nil {
		return nil, err
	}
	if len(listed.Tasks) == 0 {
		return nil, failed
	}
	id := listed.Tasks[len(listed.Tasks)-1].TaskId
	wanted := mcp.TaskResultRequest{}
	wanted.Params.TaskId = id
	result, err := of.TaskResult(ctx, wanted)
	if err != nil {
		return nil, err
	}
	get := mcp.GetTaskRequest{}
	get.Params.TaskId = id
	state, err := of.GetTask(ctx, get)
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": state.Status, "text": result.Content[0].(mcp.TextContent).Text}, nil
}
