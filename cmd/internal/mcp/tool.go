package mcp

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

// tools is the list of tools that clients get. Arguments have the names of the command's flags, with the exceptions in
// commandLine. A client may rely on the output schema; the documents contain more.
//
//go:embed tools.json
var tools []byte

func (s *server) addTools() {
	var all []*sdk.Tool
	var inputs []struct {
		Name        string
		InputSchema schema
	}
	if err := cmp.Or(json.Unmarshal(tools, &all), json.Unmarshal(tools, &inputs)); err != nil {
		panic(err)
	}
	s.schemas = schemas{}
	for _, tool := range inputs {
		s.schemas[tool.Name] = tool.InputSchema
	}
	for _, tool := range all {
		s.AddTool(tool, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			result := &sdk.CallToolResult{}
			given, err := s.schemas[tool.Name].arguments(tool.Name, req.Params.Arguments)
			var p *process
			if err == nil {
				p, err = s.call(ctx, req, tool.Name, given)
			}
			if err != nil {
				result.SetError(withHint(s.schemas.explain(tool.Name, err)))
				return result, nil
			}
			var document any
			in := json.NewDecoder(bytes.NewReader(escaped(p.documents[0])))
			in.UseNumber()
			err = in.Decode(&document) // so that its members are sorted
			result.Content, result.StructuredContent = []sdk.Content{&sdk.TextContent{Text: framed(p.text)}}, document
			return result, err
		})
	}
}

// call runs the command of a tool.
func (s *server) call(ctx context.Context, req *sdk.CallToolRequest, verb string, given map[string][]string) (*process, error) {
	stdin, args := commandLine(verb, given)
	switch verb {
	case "read":
		name, _ := req.Params.Meta[callKey].(string)
		return s.read(ctx, name, args)
	case "wait":
		return s.wait(ctx, req, args)
	}
	return s.run(context.WithoutCancel(ctx), stdin, args) // a caller that cancelled it would not know whether it was done
}

var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// escaped is a document in which text is as the model may see it: some clients give it only that.
func escaped(document json.RawMessage) json.RawMessage {
	return jsonString.ReplaceAllFunc(document, func(raw []byte) []byte {
		var text string
		json.Unmarshal(raw, &text)
		raw, _ = json.Marshal(letter.EscapeMail(text))
		return raw
	})
}

// framed ends a text with mail: a client may put others behind it.
func framed(text string) string {
	if strings.Contains(text, "\n  ") {
		text = strings.TrimSuffix(text, "\n") + "\n" + letter.End
	}
	return text
}

// commandLine turns the arguments of a call into flags, except id and words, which are words, and the text of a
// message, which is stdin.
func commandLine(verb string, given map[string][]string) (stdin string, args []string) {
	args, words := []string{verb}, []string{"--"}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		for _, value := range given[name] {
			switch {
			case name == "text" && verb != "ack":
				stdin, words = value, append(words, "-")
			case name == "outcome": // done is --done
				args = append(args, "--"+value)
			case name == "id" || name == "words":
				words = append(words, value)
			default:
				args = append(args, "--"+name+"="+value)
			}
		}
	}
	return stdin, append(args, words...)
}

const (
	waitTimeout      = "--timeout=50s" // many clients abandon a call after a minute
	progressInterval = 5 * time.Second
)

// wait runs atm wait until it ends, the call is cancelled or the client disconnects. A timeout is a result, not an
// error.
func (s *server) wait(ctx context.Context, req *sdk.CallToolRequest, args []string) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.connected, cancel)()
	go reportProgress(ctx, req)
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=") }) {
		args = slices.Insert(args, 1, waitTimeout)
	}
	p, err := s.run(ctx, "", args)
	if ctx.Err() != nil {
		return p, errors.New("the call was cancelled")
	}
	e, timedOut := errors.AsType[*failure.Error](err)
	if timedOut = timedOut && e.Code == "timeout"; timedOut {
		p.text, err = withHint(s.schemas.explain("wait", e)).Error(), nil
	}
	document, _ := json.Marshal(map[string]any{"timeout": timedOut, "matched": append([]json.RawMessage{}, p.documents...)})
	p.documents = []json.RawMessage{document}
	return p, err
}

func reportProgress(ctx context.Context, req *sdk.CallToolRequest) {
	token, tick := req.Params.GetProgressToken(), time.Tick(progressInterval)
	for waited := progressInterval; token != nil; waited += progressInterval {
		select {
		case <-tick:
			req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: waited.Seconds(), Message: "waited " + waited.String()})
		case <-ctx.Done():
			return
		}
	}
}
