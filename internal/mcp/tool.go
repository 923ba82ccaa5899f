package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/internal/cli/command"
)

// The arguments of a tool are its verb's flags, under their names, but for what its words are: see commandLine.

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
	Subject string   `json:"subject,omitempty" jsonschema:"a line above the text"`
	Ack     bool     `json:"ack,omitempty" jsonschema:"ask the recipient to say: I have it and will act on it"`
	FYI     bool     `json:"fyi,omitempty" jsonschema:"no answer wanted"`
	Urgent  bool     `json:"urgent,omitempty" jsonschema:"may break into a turn"`
	Due     string   `json:"due,omitempty" jsonschema:"an answer is expected within this time, such as 2h"`
	Attach  []string `json:"attach,omitempty" jsonschema:"paths of files that go with it"`
	Once    string   `json:"once,omitempty" jsonschema:"a name for this message: sent again under it, it is still one"`
}

type readArgs struct {
	ID     string `json:"id,omitempty" jsonschema:"this message only"`
	From   string `json:"from,omitempty" jsonschema:"from this member only"`
	Thread string `json:"thread,omitempty" jsonschema:"of the thread of this message id only"`
	Urgent bool   `json:"urgent,omitempty" jsonschema:"urgent ones only"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many (20)"`
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
	In    string `json:"in,omitempty" jsonschema:"unread, owed an ack, or done"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many (20)"`
}

// Of a tool's document a client may rely on these members.

type sentDocument struct {
	ID        string      `json:"id"`
	Delivered []recipient `json:"delivered"`
	Failed    []recipient `json:"failed"`
}

type recipient struct {
	To      string `json:"to"`
	State   string `json:"state,omitempty" jsonschema:"of the member"`
	Message string `json:"message,omitempty" jsonschema:"why it failed"`
	Hint    string `json:"hint,omitempty"`
}

type mailDocument struct {
	Messages []message `json:"messages"`
	More     int       `json:"more" jsonschema:"how many more there are"`
	Owed     []string  `json:"owed" jsonschema:"ids that await your ack"`
}

type message struct {
	ID          string   `json:"id"`
	Short       string   `json:"short" jsonschema:"the id as tools take it"`
	From        string   `json:"from"`
	To          []string `json:"to"`
	SentAt      string   `json:"sent_at,omitempty"`
	Subject     string   `json:"subject,omitempty"`
	Body        string   `json:"body,omitempty"`
	State       string   `json:"state" jsonschema:"unread, owed (your ack), done or withdrawn"`
	RequiresAck bool     `json:"requires_ack,omitempty"`
	InReplyTo   string   `json:"in_reply_to,omitempty"`
}

type waitDocument struct {
	Timeout bool      `json:"timeout" jsonschema:"nothing of it was so in time"`
	Matched []matched `json:"matched"`
}

type matched struct {
	Matched string   `json:"matched" jsonschema:"mail, or the argument that is so"`
	Agent   string   `json:"agent,omitempty"`
	Message *message `json:"message,omitempty"`
}

type teamDocument struct {
	Team    string   `json:"team"`
	Members []member `json:"members"`
}

type member struct {
	Name   string `json:"name"`
	Kind   string `json:"kind" jsonschema:"agent or person"`
	State  string `json:"state" jsonschema:"busy, idle, blocked, starting, error, off, person or unknown"`
	Detail string `json:"detail,omitempty"`
	Unread int    `json:"unread"`
	Owed   int    `json:"owed"`
}

func (s *server) addTools() {
	yes, no := true, false
	changes := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	again := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no, IdempotentHint: yes}
	looks := &sdk.ToolAnnotations{ReadOnlyHint: yes, OpenWorldHint: &no}
	addTool[sendArgs, sentDocument](s, "send", "Send a message to members of the team.", changes, s.verb)
	addTool[readArgs, mailDocument](s, "read", "Your unread mail, oldest first. What you get counts as read.", changes, s.read)
	addTool[replyArgs, sentDocument](s, "reply", "Answer a message, in its thread. It counts as the ack, and as having read it.", changes, s.verb)
	addTool[ackArgs, sentDocument](s, "ack", "Say of a message: I have it and will act on it.", again, s.verb)
	addTool[waitArgs, waitDocument](s, "wait", "Wait until there is mail for you or, with arguments, until one of them is so. Marks nothing: read does.", looks, s.wait)
	addTool[struct{}, teamDocument](s, "team", "Who is here, and who is busy, idle, blocked or off.", looks, s.verb)
	addTool[threadArgs, mailDocument](s, "thread", "A conversation in order, across the team's inboxes. Marks nothing.", looks, s.verb)
	addTool[searchArgs, mailDocument](s, "search", "Search every message of the team, newest first. Marks nothing.", looks, s.verb)
}

// A handler carries out a call, which the arguments say as a command line.
type handler func(ctx context.Context, call *sdk.CallToolRequest, stdin string, args []string) (answer, error)

// addTool adds a tool with the arguments In, whose structured output is an Out.
func addTool[In, Out any](s *server, verb, description string, hints *sdk.ToolAnnotations, handle handler) {
	tool := &sdk.Tool{Name: verb, Description: description, Annotations: hints, InputSchema: schemaOf[In](true), OutputSchema: schemaOf[Out](false)}
	sdk.AddTool(s.Server, tool, func(ctx context.Context, call *sdk.CallToolRequest, in In) (*sdk.CallToolResult, json.RawMessage, error) {
		stdin, args, err := commandLine(verb, in)
		var a answer
		if err == nil {
			a, err = handle(ctx, call, stdin, args)
		}
		if e, ok := errors.AsType[*command.Error](err); ok {
			err = hinted(e)
		}
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

// hinted is an error as a model gets it, with its hint.
func hinted(e *command.Error) error {
	if e.Hint == "" {
		return e
	}
	return fmt.Errorf("%w\nhint: %s", e, e.Hint)
}

// schemaOf is the schema of a struct. A list is never null; a document may have more members than are named.
func schemaOf[T any](isInput bool) *jsonschema.Schema {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // T is one of the types here
	}
	var mend func(*jsonschema.Schema)
	mend = func(one *jsonschema.Schema) {
		if len(one.Types) > 0 {
			one.Type, one.Types = one.Types[1], nil
		}
		if !isInput {
			one.AdditionalProperties = nil
		}
		for name, property := range one.Properties {
			mend(property)
			switch name {
			case "in":
				property.Enum = []any{"new", "cur", "done"}
			case "limit":
				property.Minimum = jsonschema.Ptr(1.0)
			}
		}
		if one.Items != nil {
			mend(one.Items)
		}
	}
	mend(schema)
	return schema
}

// commandLine says arguments as a verb's: the text of a message goes to its stdin, and id, words and in are
// its words.
func commandLine(verb string, in any) (stdin string, args []string, err error) {
	data, err := json.Marshal(in)
	fields := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	words := []string{"--"}
	args = []string{verb}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		switch list, isList := value.([]any); {
		case name == "id" || name == "words":
			words = append(words, fmt.Sprint(value))
		case name == "in":
			words = append(words, "in:"+fmt.Sprint(value))
		case name == "text" && verb != "ack":
			stdin, words = fmt.Sprint(value), append(words, "-")
		case isList:
			for _, one := range list {
				args = append(args, fmt.Sprintf("--%s=%v", name, one))
			}
		default:
			args = append(args, fmt.Sprintf("--%s=%v", name, value))
		}
	}
	return stdin, append(args, words...), err
}

// verb runs a verb. What has begun is not broken off: whoever asked would not know whether it was done.
func (s *server) verb(ctx context.Context, _ *sdk.CallToolRequest, stdin string, args []string) (answer, error) {
	return s.run(context.WithoutCancel(ctx), stdin, args)
}

const (
	waitAtMost  = "--timeout=50s" // where the call does not say: many clients give a tool up after a minute
	reportEvery = 5 * time.Second
)

// wait runs atm wait until it ends or the call is cancelled. Having waited in vain is no error to a model.
func (s *server) wait(ctx context.Context, call *sdk.CallToolRequest, _ string, args []string) (answer, error) {
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=") }) {
		args = slices.Insert(args, 1, waitAtMost)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if call.Params.GetProgressToken() != nil {
		go s.report(ctx, call)
	}
	a, err := s.run(ctx, "", args)
	var e *command.Error
	document := map[string]any{"timeout": errors.As(err, &e) && e.Code == "timeout", "matched": append([]json.RawMessage{}, a.documents...)}
	if document["timeout"] == true {
		a.text, err = hinted(e).Error(), nil
	}
	whole, _ := json.Marshal(document) // of valid documents
	a.documents = []json.RawMessage{whole}
	return a, err
}

// report tells the client that a call still waits.
func (s *server) report(ctx context.Context, call *sdk.CallToolRequest) {
	for began, tick := time.Now(), time.Tick(reportEvery); ; {
		select {
		case <-tick:
			waited := time.Since(began).Round(time.Second)
			call.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: call.Params.GetProgressToken(), Progress: waited.Seconds(), Message: "waited " + waited.String(),
			})
		case <-ctx.Done():
			return
		}
	}
}
