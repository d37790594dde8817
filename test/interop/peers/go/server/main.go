// The fixture on the official Go SDK: server http|stateless|sse|stdio PORT
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const uri = "note://today"

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}
type nothing struct{}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func newServer() *mcp.Server {
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	server := mcp.NewServer(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, &mcp.ServerOptions{
		SubscribeHandler:   accept,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, any, error) {
		return say(strconv.Itoa(in.A + in.B)), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("It failed on purpose")
	})
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		for step := 1; step <= 3; step++ {
			if token := req.Params.GetProgressToken(); token != nil {
				req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(step), Total: 3})
			}
			time.Sleep(50 * time.Millisecond)
		}
		return say("slept"), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(_ context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		if answer, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
			return say("Hello " + answer.Content["name"].(string)), nil, nil
		}
		schema := map[string]any{
			"type":       "object",
			"properties": map[string]any{"name": map[string]any{"type": "string"}},
			"required":   []string{"name"},
		}
		question := &mcp.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: schema}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": question}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		return say("touched"), nil, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
	})
	server.AddResource(&mcp.Resource{URI: uri, Name: "today", MIMEType: "text/plain"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "Today"}}}, nil
	})
	return server
}

func main() {
	server := newServer()
	get := func(*http.Request) *mcp.Server { return server }
	switch os.Args[1] {
	case "stdio":
		log.Fatal(server.Run(context.Background(), &mcp.StdioTransport{}))
	case "sse":
		log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], mcp.NewSSEHandler(get, nil)))
	default:
		options := &mcp.StreamableHTTPOptions{Stateless: os.Args[1] == "stateless"}
		log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], mcp.NewStreamableHTTPHandler(get, options)))
	}
}
