// The same small server by two SDKs for Go: `servers gosdk` or `servers mcpgo` on STDIO, or over HTTP with an address, and
// with `http`, `stateless` or `sse`.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	address, transport := "", ""
	if len(os.Args) > 3 {
		address, transport = os.Args[2], os.Args[3]
	}
	switch os.Args[1] {
	case "gosdk":
		log.Fatal(serveSDK(address, transport))
	case "mcpgo":
		log.Fatal(serveMCPGo(address, transport))
	}
}

type echoInput struct {
	Text string `json:"text"`
}

type waitInput struct {
	Count int `json:"count"`
	GapMs int `json:"gapMs"`
}

type output struct {
	Text   string `json:"text"`
	Length int    `json:"length"`
}

func serveSDK(address, transport string) error {
	s := sdk.NewServer(&sdk.Implementation{Name: "go-sdk", Version: "1.0.0"}, &sdk.ServerOptions{Instructions: "Echo."})
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again"},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoInput) (*sdk.CallToolResult, output, error) {
			return nil, output{in.Text, len(in.Text)}, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New("it failed")
		})
	sdk.AddTool(s, &sdk.Tool{Name: "wait"},
		func(ctx context.Context, req *sdk.CallToolRequest, in waitInput) (*sdk.CallToolResult, any, error) {
			for i := range in.Count {
				time.Sleep(time.Duration(in.GapMs) * time.Millisecond)
				if token := req.Params.GetProgressToken(); token != nil {
					_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1)})
				}
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "waited"}}}, nil, nil
		})
	s.AddResource(&sdk.Resource{Name: "note", MIMEType: "text/plain", URI: "test://note"},
		func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, Text: "a note"}}}, nil
		})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text := &sdk.TextContent{Text: "Hello " + req.Params.Arguments["name"]}
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: text}}}, nil
		})
	if address == "" {
		return s.Run(context.Background(), &sdk.StdioTransport{})
	}
	serve := func(*http.Request) *sdk.Server { return s }
	if transport == "sse" {
		return http.ListenAndServe(address, sdk.NewSSEHandler(serve, nil))
	}
	options := &sdk.StreamableHTTPOptions{Stateless: transport == "stateless"}
	return http.ListenAndServe(address, sdk.NewStreamableHTTPHandler(serve, options))
}

func serveMCPGo(address, transport string) error {
	s := server.NewMCPServer("mcp-go", "1.0.0", server.WithToolCapabilities(true), server.WithInstructions("Echo."))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(req.GetString("text", "")), nil
		})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("it failed"), nil
	})
	s.AddTool(mcp.NewTool("wait", mcp.WithNumber("count"), mcp.WithNumber("gapMs")),
		func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range req.GetInt("count", 0) {
				time.Sleep(time.Duration(req.GetInt("gapMs", 0)) * time.Millisecond)
				if req.Params.Meta != nil && req.Params.Meta.ProgressToken != nil {
					_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress",
						map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": i + 1})
				}
			}
			return mcp.NewToolResultText("waited"), nil
		})
	s.AddResource(mcp.NewResource("test://note", "note", mcp.WithMIMEType("text/plain")),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "test://note", MIMEType: "text/plain", Text: "a note"}}, nil
		})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name", mcp.RequiredArgument())),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := mcp.NewTextContent(fmt.Sprintf("Hello %s", req.Params.Arguments["name"]))
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, text)}), nil
		})
	if address == "" {
		return server.ServeStdio(s)
	}
	if transport == "sse" {
		return server.NewSSEServer(s).Start(address)
	}
	return server.NewStreamableHTTPServer(s, server.WithStateLess(transport == "stateless")).Start(address)
}
