package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type goSDK struct {
	endpoint, url, key, name, revision string
	session                            *mcp.ClientSession
}

type withKey struct{ key string }

func (w withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+w.key)
	return http.DefaultTransport.RoundTrip(request)
}

func (g *goSDK) connect(ctx context.Context) (string, error) {
	options := &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
		progress.Add(1)
	}}
	client := mcp.NewClient(&mcp.Implementation{Name: g.name, Version: "1.0.0"}, options)
	http := &http.Client{Transport: withKey{g.key}}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: g.url, HTTPClient: http}
	switch g.endpoint {
	case "sse":
		transport = &mcp.SSEClientTransport{Endpoint: g.url, HTTPClient: http}
	case "stdio":
		words := strings.Split(g.url, " ")
		transport = &mcp.CommandTransport{Command: exec.Command(words[0], words[1:]...)}
	}
	var sessionOptions *mcp.ClientSessionOptions
	if g.revision != "" {
		sessionOptions = &mcp.ClientSessionOptions{ProtocolVersion: g.revision}
	}
	session, err := client.Connect(ctx, transport, sessionOptions)
	if err != nil {
		return "", err
	}
	g.session = session
	return session.InitializeResult().ProtocolVersion, nil
}

func (g *goSDK) list(ctx context.Context) (int, error) {
	result, err := g.session.ListTools(ctx, nil)
	if err != nil {
		return 0, err
	}
	return len(result.Tools), nil
}

func (g *goSDK) call(ctx context.Context, tool string) (string, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"client": g.name}}
	params.SetProgressToken("progress")
	result, err := g.session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	return result.Content[0].(*mcp.TextContent).Text, nil
}

func (g *goSDK) ask(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "tools/list":
		return g.session.ListTools(ctx, nil)
	case "prompts/list":
		return g.session.ListPrompts(ctx, nil)
	case "resources/list":
		return g.session.ListResources(ctx, nil)
	case "resources/templates/list":
		return g.session.ListResourceTemplates(ctx, nil)
	case "tools/call":
		return g.session.CallTool(ctx, read[mcp.CallToolParams](params))
	case "prompts/get":
		return g.session.GetPrompt(ctx, read[mcp.GetPromptParams](params))
	}
	return g.session.ReadResource(ctx, read[mcp.ReadResourceParams](params))
}
