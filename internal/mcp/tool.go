package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/internal/cli/command"
)

// A tool's arguments are its verb's flags, under their names, but for what commandLine makes its words. The
// structs are only their schemas.

type sendArgs struct {
	To     string `json:"to" jsonschema:"a member; several with commas between; all: everybody but you"`
	Text   string `json:"text" jsonschema:"what you say; one subject a message"`
	Thread string `json:"thread,omitempty" jsonschema:"in the thread of this message id"`
	messageArgs
}

type replyArgs struct {
	ID   string `json:"id" jsonschema:"the message that is answered, as read shows it"`
	Text string `json:"text" jsonschema:"the answer"`
	All  bool   `json:"all,omitempty" jsonschema:"to its other recipients as well"`
	messageArgs
}

type messageArgs struct {
	Subject string `json:"subject,omitempty" jsonschema:"a line above the text"`
	Ack     bool   `json:"ack,omitempty" jsonschema:"ask the recipient to say: I have it and will act on it"`
	FYI     bool   `json:"fyi,omitempty" jsonschema:"no answer wanted"`
	Urgent  bool   `json:"urgent,omitempty" jsonschema:"may break into a turn"`
	Due     string `json:"due,omitempty" jsonschema:"an answer is expected within this time, such as 2h"`
	Attach  list   `json:"attach,omitempty" jsonschema:"paths of files that go with it"`
	Once    string `json:"once,omitempty" jsonschema:"a name for this message: sent again under it, it is still one"`
}

type readArgs struct {
	ID     string `json:"id,omitempty" jsonschema:"this message only"`
	From   string `json:"from,omitempty" jsonschema:"from this member only"`
	Thread string `json:"thread,omitempty" jsonschema:"of the thread of this message id only"`
	Urgent bool   `json:"urgent,omitempty" jsonschema:"urgent ones only"`
	Limit  count  `json:"limit,omitempty" jsonschema:"at most so many (20)"`
	Peek   bool   `json:"peek,omitempty" jsonschema:"mark nothing as read"`
	Last   bool   `json:"last,omitempty" jsonschema:"the last batch again"`
}

type ackArgs struct {
	ID   string `json:"id" jsonschema:"the message"`
	Text string `json:"text,omitempty" jsonschema:"a word with it"`
}

type waitArgs struct {
	Reply    string `json:"reply,omitempty" jsonschema:"until this message id has an answer"`
	Acked    string `json:"acked,omitempty" jsonschema:"until every recipient has acked this message id"`
	Idle     string `json:"idle,omitempty" jsonschema:"until this member has no open turn and is not blocked"`
	Busy     string `json:"busy,omitempty" jsonschema:"until this member is in a turn"`
	TurnDone string `json:"turn-done,omitempty" jsonschema:"until the turn of this member, or of this message id, is over"`
	Blocked  string `json:"blocked,omitempty" jsonschema:"until this member asks for a permission or an answer"`
	Exit     string `json:"exit,omitempty" jsonschema:"until this member is off"`
	Every    bool   `json:"every,omitempty" jsonschema:"until all of what is named is so, not any"`
	Timeout  string `json:"timeout,omitempty" jsonschema:"at most so long (50s), such as 10m where your client waits for that; 0: for ever"`
}

type threadArgs struct {
	ID string `json:"id" jsonschema:"any message of it"`
}

type searchArgs struct {
	Words string `json:"words" jsonschema:"all must be in the subject or the text, in any case"`
	From  string `json:"from,omitempty" jsonschema:"from this member only"`
	To    string `json:"to,omitempty" jsonschema:"to this member only"`
	Since string `json:"since,omitempty" jsonschema:"not older than this, such as 7d"`
	In    place  `json:"in,omitempty" jsonschema:"unread, owed an ack, or done"`
	Limit count  `json:"limit,omitempty" jsonschema:"at most so many (20)"`
}

// Kinds of arguments, beside strings and booleans.
type (
	list  []string
	count int
	place string
)

var kinds = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[list]():  {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
	reflect.TypeFor[count](): {Type: "integer", Minimum: jsonschema.Ptr(1.0)},
	reflect.TypeFor[place](): {Type: "string", Enum: []any{"new", "cur", "done"}},
}

// Of a tool's document a client may rely on this; there is more in it.
const (
	sentDocument = `{"type": "object", "required": ["id", "delivered", "failed"], "properties": {"id": {"type": "string"},
		"delivered": {"type": "array", "items": {"type": "object", "required": ["to", "state"], "properties": {"to": {"type": "string"}, "state": {"type": "string"}}}},
		"failed": {"type": "array", "items": {"type": "object", "required": ["to", "message"], "properties": {"to": {"type": "string"}, "message": {"type": "string"}}}}}}`
	messageSchema = `{"type": "object", "required": ["id", "short", "from", "to", "state"], "properties": {
		"id": {"type": "string"}, "short": {"type": "string", "description": "the id as tools take it"}, "from": {"type": "string"},
		"to": {"type": "array", "items": {"type": "string"}}, "subject": {"type": "string"}, "body": {"type": "string"},
		"sent_at": {"type": "string"}, "requires_ack": {"type": "boolean"}, "state": {"type": "string"}}}`
	mailDocument = `{"type": "object", "required": ["messages", "more", "owed"], "properties": {
		"messages": {"type": "array", "items": ` + messageSchema + `}, "more": {"type": "integer", "description": "how many more there are"},
		"owed": {"type": "array", "items": {"type": "string"}, "description": "ids that await your ack"}}}`
	waitDocument = `{"type": "object", "required": ["timeout", "matched"], "properties": {
		"timeout": {"type": "boolean", "description": "nothing of it was so in time"}, "matched": {"type": "array", "items": {"type": "object",
		"required": ["matched"], "properties": {"matched": {"type": "string"}, "agent": {"type": "string"}, "message": ` + messageSchema + `}}}}}`
	teamDocument = `{"type": "object", "required": ["team", "members"], "properties": {"team": {"type": "string"},
		"members": {"type": "array", "items": {"type": "object", "required": ["name", "kind", "state", "unread", "owed"], "properties": {
		"name": {"type": "string"}, "kind": {"type": "string"}, "state": {"type": "string"}, "detail": {"type": "string"},
		"unread": {"type": "integer"}, "owed": {"type": "integer"}}}}}}`
)

// A call is what a client asks for, as a command line.
type call struct {
	*sdk.CallToolRequest
	stdin string
	args  []string
}

func (s *server) addTools() {
	yes, no := true, false
	changes := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	again := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no, IdempotentHint: yes}
	looks := &sdk.ToolAnnotations{ReadOnlyHint: yes, OpenWorldHint: &no}
	s.addTool("send", "Send a message to members of the team.", changes, sendArgs{}, sentDocument, s.verb)
	s.addTool("read", "Your unread mail, oldest first. What you get counts as read.", changes, readArgs{}, mailDocument, s.read)
	s.addTool("reply", "Answer a message, in its thread. It counts as the ack, and as having read it.", changes, replyArgs{}, sentDocument, s.verb)
	s.addTool("ack", "Say of a message: I have it and will act on it.", again, ackArgs{}, sentDocument, s.verb)
	s.addTool("wait", "Wait until there is mail for you or, with arguments, until one of them is so. Marks nothing: read does.", looks, waitArgs{}, waitDocument, s.wait)
	s.addTool("team", "Who is here, and who is busy, idle, blocked or off.", looks, struct{}{}, teamDocument, s.verb)
	s.addTool("thread", "A conversation in order, across the team's inboxes. Marks nothing.", looks, threadArgs{}, mailDocument, s.verb)
	s.addTool("search", "Search every message of the team, newest first. Marks nothing.", looks, searchArgs{}, mailDocument, s.verb)
}

// addTool adds the tool of a verb. Its structured output is the document that the verb prints.
func (s *server) addTool(verb, does string, hints *sdk.ToolAnnotations, args any, document string, run func(context.Context, call) (answer, error)) {
	input, err := jsonschema.ForType(reflect.TypeOf(args), &jsonschema.ForOptions{TypeSchemas: kinds})
	if err != nil {
		panic(err) // args is a struct of this file
	}
	tool := &sdk.Tool{Name: verb, Description: does, Annotations: hints, InputSchema: input, OutputSchema: json.RawMessage(document)}
	sdk.AddTool(s.Server, tool, func(ctx context.Context, req *sdk.CallToolRequest, given map[string]any) (*sdk.CallToolResult, json.RawMessage, error) {
		stdin, line := commandLine(verb, given)
		a, err := run(ctx, call{req, stdin, line})
		if err != nil {
			return nil, nil, hinted(err)
		}
		result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.text}}}
		if a.token != "" {
			result.Meta = sdk.Meta{"atm/read": a.token}
		}
		return result, a.documents[0], nil
	})
}

// hinted is an error as a model gets it, with its hint.
func hinted(err error) error {
	if e, ok := errors.AsType[*command.Error](err); ok && e.Hint != "" {
		return fmt.Errorf("%w\nhint: %s", err, e.Hint)
	}
	return err
}

// commandLine says arguments as a verb's: the text of a message goes to its stdin; id and words are its words.
func commandLine(verb string, given map[string]any) (stdin string, args []string) {
	args, words := []string{verb}, []string{"--"}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		values, isList := given[name].([]any)
		if !isList {
			values = []any{given[name]}
		}
		for _, value := range values {
			switch text := fmt.Sprint(value); {
			case name == "id" || name == "words":
				words = append(words, text)
			case name == "text" && verb != "ack":
				stdin, words = text, append(words, "-")
			default:
				args = append(args, "--"+name+"="+text)
			}
		}
	}
	return stdin, append(args, words...)
}

// verb runs a verb. What has begun is not broken off: whoever asked would not know whether it was done.
func (s *server) verb(ctx context.Context, c call) (answer, error) {
	return s.run(context.WithoutCancel(ctx), c.stdin, c.args)
}

const (
	waitAtMost  = "--timeout=50s" // where the call does not say: many clients give a tool up after a minute
	reportEvery = 5 * time.Second
)

// wait runs atm wait until it ends or nobody waits for the answer. That it was in vain is no error to a model.
func (s *server) wait(ctx context.Context, c call) (answer, error) {
	if !slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=") }) {
		c.args = slices.Insert(c.args, 1, waitAtMost)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.hungUp, cancel)()
	go report(ctx, c)
	a, err := s.run(ctx, "", c.args)
	var e *command.Error
	isVain := errors.As(err, &e) && e.Code == "timeout"
	if isVain {
		a.text, err = hinted(e).Error(), nil
	}
	document, _ := json.Marshal(map[string]any{"timeout": isVain, "matched": append([]json.RawMessage{}, a.documents...)})
	a.documents = []json.RawMessage{document}
	return a, err
}

// report tells a client that wants to know that its call still waits.
func report(ctx context.Context, c call) {
	token := c.Params.GetProgressToken()
	for began, tick := time.Now(), time.Tick(reportEvery); token != nil; {
		select {
		case <-tick:
			waited := time.Since(began).Round(time.Second)
			c.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: waited.Seconds(), Message: "waited " + waited.String()})
		case <-ctx.Done():
			return
		}
	}
}
