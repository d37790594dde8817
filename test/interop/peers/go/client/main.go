// The client of the official Go SDK; see clients/exercise.mjs. The mode is the transport and the revision to ask for.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type words struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
	URI  string         `json:"uri"`
}

var peer struct {
	URL   string           `json:"url"`
	Mode  string           `json:"mode"`
	Steps []string         `json:"steps"`
	Words map[string]words `json:"words"`
}

func tell(step string, saw any, err error) {
	line := map[string]any{"step": step, "saw": saw}
	if err != nil {
		line = map[string]any{"step": step, "error": err.Error()}
	}
	text, _ := json.Marshal(line)
	fmt.Printf("@step %s\n", text)
}

func text(result *mcp.CallToolResult) string {
	var parts []string
	for _, part := range result.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, " ")
}

func main() {
	if err := json.Unmarshal([]byte(os.Getenv("PEER")), &peer); err != nil {
		panic(err)
	}
	var progress atomic.Int32
	updated := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			schema, _ := json.Marshal(req.Params.RequestedSchema)
			var form struct {
				Properties map[string]any `json:"properties"`
			}
			json.Unmarshal(schema, &form)
			content := map[string]any{}
			for key := range form.Properties {
				content[key] = "Ada"
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress.Add(1) },
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			updated <- req.Params.URI
		},
	})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: peer.URL}
	revision, sse := strings.CutPrefix(peer.Mode, "sse")
	if sse {
		transport = &mcp.SSEClientTransport{Endpoint: peer.URL}
	}
	background := context.Background()
	session, err := client.Connect(background, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		tell("connect", nil, err)
		return
	}
	tell("connect", session.InitializeResult().ProtocolVersion, nil)
	for _, step := range peer.Steps[1:] {
		ctx, cancel := context.WithTimeout(background, 20*time.Second)
		saw, err := take(ctx, session, step, peer.Words[step], &progress, updated)
		tell(step, saw, err)
		cancel()
	}
	session.Close()
}

func take(ctx context.Context, session *mcp.ClientSession, step string, words words, progress *atomic.Int32, updated chan string) (any, error) {
	call := func() (*mcp.CallToolResult, error) {
		params := &mcp.CallToolParams{Name: words.Tool, Arguments: words.Args}
		if step == "progress" {
			params.SetProgressToken("steps")
		}
		return session.CallTool(ctx, params)
	}
	switch step {
	case "list":
		var names []string
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return nil, err
			}
			names = append(names, tool.Name)
		}
		return names, nil
	case "read":
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: words.URI})
		if err != nil {
			return nil, err
		}
		return result.Contents[0].Text, nil
	case "change":
		if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: words.URI}); err != nil {
			return nil, err
		}
		for range 5 {
			if _, err := call(); err != nil {
				return nil, err
			}
			select {
			case uri := <-updated:
				return uri, nil
			case <-time.After(time.Second):
			}
		}
		return nil, errors.New("no change was told")
	}
	result, err := call()
	if err != nil {
		if step == "error" {
			return err.Error(), nil
		}
		return nil, err
	}
	switch {
	case step == "progress":
		return map[string]any{"count": progress.Load(), "text": text(result)}, nil
	case step == "error" && !result.IsError:
		return nil, errors.New("no error: " + text(result))
	}
	return text(result), nil
}
