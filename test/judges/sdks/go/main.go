// Clients of go-sdk and mcp-go, told by lines on stdin what to do: connect, list, call, count, cancel, or ask with a
// request. They print a line of JSON for each. Arguments: `go-sdk` or `mcp-go`; `mcp`, `sse` or `stdio`; the URL or the
// server's command; the key; the client's name; the revision, which is empty for the SDK's default. With `tasks`, the URL
// and tools: see runTasks.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// The limit of a call; the SDKs have none of their own.
const callTime = 15 * time.Second

// What a client does in answer to a line. The tool `echo` answers at once, and `hold` never.
type sdkClient interface {
	connect(ctx context.Context) (revision string, err error)
	list(ctx context.Context) (tools int, err error)
	call(ctx context.Context, tool string) (text string, err error)
	ask(ctx context.Context, method string, params json.RawMessage) (result any, err error)
}

// The progress messages that the client has got.
var progress atomic.Int64

func main() {
	if os.Args[1] == "tasks" {
		runTasks(os.Args[2], os.Args[3:])
		return
	}
	sdk, endpoint, url, key, name, revision := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]
	var of sdkClient = &goSDK{endpoint: endpoint, url: url, key: key, name: name, revision: revision}
	if sdk == "mcp-go" {
		of = &mcpGo{endpoint: endpoint, url: url, key: key, name: name, revision: revision}
	}
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := run(of, lines.Text())
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		out.Encode(answer)
	}
}

func read[T any](text json.RawMessage) *T {
	of := new(T)
	if err := json.Unmarshal(text, of); err != nil {
		panic(err)
	}
	return of
}

func run(of sdkClient, line string) (map[string]any, error) {
	step, words, _ := strings.Cut(line, " ")
	switch step {
	case "connect":
		// The context of a connection ends its streams, so it has no limit.
		revision, err := of.connect(context.Background())
		return map[string]any{"revision": revision}, err
	case "list":
		tools, err := of.list(context.Background())
		return map[string]any{"tools": tools}, err
	case "ask":
		ctx, stop := context.WithTimeout(context.Background(), callTime)
		defer stop()
		request := read[struct {
			Method string
			Params json.RawMessage
		}](json.RawMessage(words))
		result, err := of.ask(ctx, request.Method, request.Params)
		return map[string]any{"result": result}, err
	case "cancel":
		ctx, stop := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer stop()
		of.call(ctx, "hold")
		return map[string]any{}, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), callTime)
	defer stop()
	progress.Store(0)
	tool := "echo"
	if step == "count" {
		tool = "count"
	}
	text, err := of.call(ctx, tool)
	// go-sdk can pass on the last progress after the answer.
	time.Sleep(200 * time.Millisecond)
	return map[string]any{"text": text, "progress": progress.Load()}, err
}
