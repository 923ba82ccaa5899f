package mcp

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/internal/cli/failure"
)

// tools is the list of tools that clients get. Arguments have the names of the command's flags, with the exceptions in
// commandLine. A client may rely on the output schema; the documents contain more.
//
//go:embed tools.json
var tools []byte

type call struct {
	*sdk.CallToolRequest
	stdin string
	args  []string
}

func (s *server) addTools() {
	var all []*sdk.Tool
	if err := json.Unmarshal(tools, &all); err != nil {
		panic(err)
	}
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, req)
			r, isCall := result.(*sdk.CallToolResult)
			if err == nil && isCall && r.GetError() != nil {
				n := slices.IndexFunc(all, func(t *sdk.Tool) bool { return t.Name == req.(*sdk.CallToolRequest).Params.Name })
				r.Content = nil
				r.SetError(toolError(all[n], r.GetError()))
			}
			return result, err
		}
	})
	special := map[string]func(context.Context, call) (answer, error){"read": s.read, "wait": s.wait}
	for _, tool := range all {
		run := special[tool.Name]
		if run == nil {
			run = s.runVerb
		}
		sdk.AddTool(s.Server, tool, func(ctx context.Context, req *sdk.CallToolRequest, given map[string]any) (*sdk.CallToolResult, json.RawMessage, error) {
			stdin, args, err := commandLine(tool.Name, given)
			if err != nil {
				return nil, nil, err
			}
			a, err := run(ctx, call{req, stdin, args})
			if err != nil {
				return nil, nil, err
			}
			result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.text}}}
			if a.token != "" {
				result.Meta = sdk.Meta{"atm/read": a.token}
			}
			return result, a.documents[0], nil
		})
	}
}

func withHint(err error) error {
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Hint != "" {
		return fmt.Errorf("%w\nhint: %s", err, e.Hint)
	}
	return err
}

// toolError adds a hint to an error. A usage error names the tool's arguments instead of flags, and lists them unless
// the command has a better hint than its help.
func toolError(tool *sdk.Tool, err error) error {
	e, isOwn := errors.AsType[*failure.Error](err)
	text, isInvalid := strings.CutPrefix(err.Error(), `validating "arguments": validating root: `)
	if !isInvalid && (!isOwn || e.Code != "usage") {
		return withHint(err)
	}
	schema := tool.InputSchema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	names := slices.Sorted(maps.Keys(properties))
	for i, name := range names {
		text = strings.ReplaceAll(text, "--"+name, name)
		if slices.Contains(required, any(name)) {
			names[i] += " (required)"
		}
	}
	if isOwn && e.Hint != "" && !strings.HasSuffix(e.Hint, " --help") {
		return fmt.Errorf("%s\nhint: %s", text, e.Hint)
	}
	return fmt.Errorf("%s\nhint: %s takes %s", text, tool.Name, cmp.Or(strings.Join(names, ", "), "no arguments"))
}

// maxArgument is the limit in bytes for arguments other than the text of a message: Linux refuses 128 KiB.
const maxArgument = 100 << 10

// commandLine turns the arguments of a call into flags, except id and words, which are words, and the text of a
// message, which is stdin.
func commandLine(verb string, given map[string]any) (stdin string, args []string, err error) {
	args, words := []string{verb}, []string{"--"}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		values, isList := given[name].([]any)
		if !isList {
			values = []any{given[name]}
		}
		for _, value := range values {
			if n, isNumber := value.(float64); isNumber {
				value = int64(n) // Sprint would write 1e+06
			}
			text := fmt.Sprint(value)
			switch {
			case name == "text" && verb != "ack":
				stdin, words = text, append(words, "-")
			case strings.Contains(text, "\x00"):
				return "", nil, failure.Usage("%s contains a NUL byte", name)
			case len(text) > maxArgument:
				return "", nil, failure.Usage("%s has %d bytes; the limit is %d", name, len(text), maxArgument).
					WithHint("put long content into the text of send or reply")
			case name == "id" || name == "words":
				words = append(words, text)
			default:
				args = append(args, "--"+name+"="+text)
			}
		}
	}
	return stdin, append(args, words...), nil
}

// runVerb runs a command to its end: a caller that cancelled it would not know whether it was done.
func (s *server) runVerb(ctx context.Context, c call) (answer, error) {
	return s.run(context.WithoutCancel(ctx), c.stdin, c.args)
}

const (
	waitTimeout      = "--timeout=50s" // many clients abandon a call after a minute
	progressInterval = 5 * time.Second
)

// wait runs atm wait until it ends, the call is cancelled or the client disconnects. A timeout is a result, not an
// error.
func (s *server) wait(ctx context.Context, c call) (answer, error) {
	c.args = slices.Insert(c.args, 1, waitTimeout) // a later --timeout of the call wins
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.connected, cancel)()
	go reportProgress(ctx, c)
	a, err := s.run(ctx, "", c.args)
	if ctx.Err() != nil {
		return a, errors.New("the call was cancelled")
	}
	e, timedOut := errors.AsType[*failure.Error](err)
	if timedOut = timedOut && e.Code == "timeout"; timedOut {
		a.text, err = withHint(e).Error(), nil
	}
	document, _ := json.Marshal(map[string]any{"timeout": timedOut, "matched": append([]json.RawMessage{}, a.documents...)})
	a.documents = []json.RawMessage{document}
	return a, err
}

func reportProgress(ctx context.Context, c call) {
	token, tick := c.Params.GetProgressToken(), time.Tick(progressInterval)
	for waited := progressInterval; token != nil; waited += progressInterval {
		select {
		case <-tick:
			c.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: waited.Seconds(), Message: "waited " + waited.String()})
		case <-ctx.Done():
			return
		}
	}
}
