package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

type mcpGo struct {
	endpoint, url, key, name, revision string
	client                             *client.Client
}

func (m *mcpGo) connect(ctx context.Context) (string, error) {
	headers := map[string]string{"Authorization": "Bearer " + m.key}
	var err error
	switch m.endpoint {
	case "sse":
		m.client, err = client.NewSSEMCPClient(m.url, client.WithHeaders(headers))
		if err == nil {
			err = m.client.Start(ctx)
		}
	case "stdio":
		words := strings.Split(m.url, " ")
		m.client, err = client.NewStdioMCPClient(words[0], nil, words[1:]...)
	default:
		m.client, err = client.NewStreamableHttpClient(m.url, transport.WithHTTPHeaders(headers))
	}
	if err != nil {
		return "", err
	}
	m.client.OnNotification(func(notification mcp.JSONRPCNotification) {
		if notification.Method == "notifications/progress" {
			progress.Add(1)
		}
	})
	start := mcp.InitializeRequest{}
	start.Params.ClientInfo = mcp.Implementation{Name: m.name, Version: "1.0.0"}
	start.Params.ProtocolVersion = m.revision
	result, err := m.client.Initialize(ctx, start)
	if err != nil {
		return "", err
	}
	return result.ProtocolVersion, nil
}

func (m *mcpGo) list(ctx context.Context) (int, error) {
	result, err := m.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return 0, err
	}
	return len(result.Tools), nil
}

func (m *mcpGo) call(ctx context.Context, tool string) (string, error) {
	call := mcp.CallToolRequest{}
	call.Params.Name = tool
	call.Params.Arguments = map[string]any{"client": m.name}
	call.Params.Meta = &mcp.Meta{ProgressToken: "progress"}
	result, err := m.client.CallTool(ctx, call)
	if err != nil {
		return "", err
	}
	return result.Content[0].(mcp.TextContent).Text, nil
}

func (m *mcpGo) ask(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "tools/list":
		return m.client.ListTools(ctx, mcp.ListToolsRequest{})
	case "prompts/list":
		return m.client.ListPrompts(ctx, mcp.ListPromptsRequest{})
	case "resources/list":
		return m.client.ListResources(ctx, mcp.ListResourcesRequest{})
	case "resources/templates/list":
		return m.client.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
	case "tools/call":
		return m.client.CallTool(ctx, mcp.CallToolRequest{Params: *read[mcp.CallToolParams](params)})
	case "prompts/get":
		return m.client.GetPrompt(ctx, mcp.GetPromptRequest{Params: *read[mcp.GetPromptParams](params)})
	}
	return m.client.ReadResource(ctx, mcp.ReadResourceRequest{Params: *read[mcp.ReadResourceParams](params)})
}
