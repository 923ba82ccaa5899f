package appserver

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// What an Event may be; there are many more.
const (
	TurnStarted   = "turn/started"
	TurnCompleted = "turn/completed"
	ItemCompleted = "item/completed"
	StatusChanged = "thread/status/changed"
	QueueChanged  = "thread/queue/changed"
	ThreadClosed  = "thread/closed" // nobody has it in memory any more
	Resolved      = "serverRequest/resolved"

	ApproveCommand    = "item/commandExecution/requestApproval"
	ApproveFileChange = "item/fileChange/requestApproval"
)

// Decisions about an Approval.
const (
	Accept  = "accept"
	Decline = "decline"
)

// An Event is what the server tells or asks. Turn, Item, Status and Approval have what belongs to its Method, and are
// empty where the server said something else.
type Event struct {
	Method  string
	Thread  string // "": it concerns none
	TurnID  string // "": it concerns none
	Request string // of a request, and of Resolved: names it, as JSON; else ""

	params json.RawMessage
}

func newEvent(m message) Event {
	e := Event{Method: m.Method, Request: string(m.ID), params: m.Params}
	ids := read[struct {
		Thread  string          `json:"threadId"`
		Turn    string          `json:"turnId"`
		Request json.RawMessage `json:"requestId"`
	}](e)
	e.Thread, e.TurnID = ids.Thread, ids.Turn
	if e.Method == Resolved {
		e.Request = string(ids.Request)
	}
	if turn := e.Turn(); turn.ID != "" {
		e.TurnID = turn.ID
	}
	return e
}

// read reads an event's parameters; a value of the wrong type is left out.
func read[T any](e Event) (params T) {
	if json.Unmarshal(e.params, &params) != nil {
		return *new(T)
	}
	return params
}

// Turn is of TurnStarted and TurnCompleted.
func (e Event) Turn() Turn {
	return read[struct {
		Turn Turn `json:"turn"`
	}](e).Turn
}

// Item is of ItemCompleted.
func (e Event) Item() Item {
	return read[struct {
		Item Item `json:"item"`
	}](e).Item
}

// Status is of StatusChanged.
func (e Event) Status() Status {
	return read[struct {
		Status Status `json:"status"`
	}](e).Status
}

// An Approval is what an agent asks for. All clients are asked, and the first answer counts; Resolved tells the others.
type Approval struct {
	Item      string `json:"itemId"`
	ID        string `json:"approvalId"` // "" for most
	Command   string `json:"command"`
	Dir       string `json:"cwd"`
	Reason    string `json:"reason"`
	GrantRoot string `json:"grantRoot"`
	StartedAt int64  `json:"startedAtMs"`

	// It asks for more than to run Command, if any of these says so.
	Kind    string          `json:"kind"` // "" or "command"
	Network json.RawMessage `json:"networkApprovalContext"`
	More    json.RawMessage `json:"additionalPermissions"`

	Decisions []json.RawMessage `json:"availableDecisions"` // empty: it does not say
}

// inShell matches a command that a shell runs, if it is quoted in the simplest way.
var inShell = regexp.MustCompile(`^(?:/[\w./-]*/)?(?:ba|z)?sh -l?c (?:'([^']+)'|([\w./-]+))$`)

// yesOrNo are the answers that every approval takes.
var yesOrNo = []ask.Option{
	{ID: Accept, Label: "Yes, proceed", Kind: "allow_once"},
	{ID: Decline, Label: "No, and go on without it", Kind: "reject_once"},
}

// Question is what ApproveCommand and ApproveFileChange ask, and what rules may answer of it; nil: nothing.
func (e Event) Question() (q ask.Question, rule *policy.Request) {
	a := e.Approval()
	q = ask.Question{
		ID: wire.Clip(strings.TrimSpace(a.Item+" "+a.ID), 80), Tool: "Edit", Prompt: strings.TrimSpace("change files " + a.GrantRoot), Options: yesOrNo,
	}
	if e.Method != ApproveCommand {
		return q, nil
	}
	line, isAll := a.Line()
	if q.Tool, q.Prompt = "Bash", line; isAll {
		rule = &policy.Request{Tool: "Bash", Command: true, Input: line}
	}
	if a.AsksMore() {
		q.Prompt += " (and asks for more: see its terminal)"
	}
	return q, rule
}

// Line returns what the shell of a command runs, whole, and whether the approval is for that and no more. Else it returns
// the command as it is.
func (a Approval) Line() (line string, isAll bool) {
	m := inShell.FindStringSubmatch(a.Command)
	if m == nil {
		return a.Command, false
	}
	return m[1] + m[2], !a.AsksMore()
}

// AsksMore reports whether the approval is for more than to run Command.
func (a Approval) AsksMore() bool {
	isNone := func(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }
	isCommand := a.Kind == "" || a.Kind == "command"
	return !isCommand || !isNone(a.Network) || !isNone(a.More)
}

// Approval is of ApproveCommand and ApproveFileChange.
func (e Event) Approval() Approval { return read[Approval](e) }

// Answer answers an event's Request with a decision.
func (c *Client) Answer(ctx context.Context, request, decision string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.Err(); err != nil {
		return fmt.Errorf("answer request %s: %w", request, err)
	}
	err := c.write(ctx, struct {
		ID     json.RawMessage   `json:"id"`
		Result map[string]string `json:"result"`
	}{json.RawMessage(request), map[string]string{"decision": decision}})
	if err != nil {
		return fmt.Errorf("answer request %s: %w", request, err)
	}
	return nil
}
