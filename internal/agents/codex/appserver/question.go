package appserver

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A Question is what a thread asks, and what the server is told for each of the question's options.
type Question struct {
	ask.Question
	TurnID string

	request string // names it on this connection; on another one the same name may be another question's
	results map[string]json.RawMessage
}

// The requests that are questions.
const (
	approveCommand    = "item/commandExecution/requestApproval"
	approveFileChange = "item/fileChange/requestApproval"
	requestUserInput  = "item/tool/requestUserInput"
)

// An approval is what an agent asks leave for. All clients are asked, and the first answer counts.
type approval struct {
	Item      string `json:"itemId"`
	ID        string `json:"approvalId"` // "" for most
	Command   string `json:"command"`
	GrantRoot string `json:"grantRoot"`

	// It asks for more than to run Command, if any of these says so.
	Kind    string          `json:"kind"` // "" or "command"
	Network json.RawMessage `json:"networkApprovalContext"`
	More    json.RawMessage `json:"additionalPermissions"`

	Decisions []json.RawMessage `json:"availableDecisions"` // empty: it does not say
}

// userInput is what an agent asks its person.
type userInput struct {
	Item      string `json:"itemId"`
	Questions []struct {
		ID       string `json:"id"`
		Question string `json:"question"`
		IsSecret bool   `json:"isSecret"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

// decisions are those of the answers to an approval that have a name.
var decisions = map[string]ask.Option{
	"accept":           {Label: "Yes, proceed", Kind: "allow_once"},
	"acceptForSession": {Label: "Yes, and don't ask again for this in this session", Kind: "allow_always"},
	"decline":          {Label: "No, and go on without it", Kind: "reject_once"},
	"cancel":           {Label: "No, and end the turn", Kind: "reject_once"},
}

// newQuestion returns what a request asks; nil: it is none that atm answers. Without options only its terminal answers it.
func newQuestion(e Event) *Question {
	q := &Question{TurnID: e.TurnID, request: e.Request, results: map[string]json.RawMessage{}}
	a := read[approval](e)
	q.ID, q.Kind, q.Options = wire.Clip(strings.TrimSpace(a.Item+" "+a.ID), 80), reducer.Permission, []ask.Option{}
	switch e.Method {
	case approveCommand:
		q.Tool, q.Prompt = "Bash", inShell(a.Command)
		if a.asksMore() {
			q.Prompt += " (and asks for more: see its terminal)"
		}
		isCancel := func(d json.RawMessage) bool { return string(d) == `"cancel"` }
		listed := slices.DeleteFunc(slices.Clone(a.Decisions), isCancel)
		all := slices.Concat(quoted("accept"), listed, quoted("decline")) // these two it takes always
		if len(listed) < len(a.Decisions) {
			all = append(all, quoted("cancel")...) // behind the no that goes on with the turn
		}
		for _, d := range all {
			q.decide(d)
		}
	case approveFileChange: // it names none
		q.Tool, q.Prompt, q.Cut = "apply_patch", strings.TrimSpace("change files "+a.GrantRoot), true
		for _, d := range quoted("accept", "acceptForSession", "decline", "cancel") {
			q.decide(d)
		}
	case requestUserInput:
		q.Kind = reducer.Question
		q.askPerson(read[userInput](e))
	default:
		return nil
	}
	return q
}

func quoted(words ...string) (all []json.RawMessage) {
	for _, word := range words {
		all = append(all, json.RawMessage(strconv.Quote(word)))
	}
	return all
}

// decide adds a decision to the options, if it is known and not among them.
func (q *Question) decide(decision json.RawMessage) {
	var id string
	var amended struct {
		Policy *struct {
			Words []string `json:"execpolicy_amendment"`
		} `json:"acceptWithExecpolicyAmendment"`
	}
	option, isNamed := ask.Option{}, false
	if json.Unmarshal(decision, &id) == nil {
		option, isNamed = decisions[id]
	} else if json.Unmarshal(decision, &amended) == nil && amended.Policy != nil && len(amended.Policy.Words) > 0 {
		id, isNamed = "always", true
		option = ask.Option{Label: "Yes, and don't ask again for commands that start with: " + strings.Join(amended.Policy.Words, " "), Kind: "allow_always"}
	}
	if option.ID = id; !isNamed || q.results[id] != nil {
		return
	}
	q.Options = append(q.Options, option)
	q.results[id] = result(map[string]json.RawMessage{"decision": decision})
}

// result is an answer to the server.
func result(v any) json.RawMessage {
	data, _ := json.Marshal(v) // words, and JSON that was read
	return data
}

// askPerson has one question with options be answered by one of them.
func (q *Question) askPerson(in userInput) {
	q.Dialog = "question"
	var all []string
	for _, one := range in.Questions {
		all = append(all, one.Question)
	}
	q.Prompt = strings.Join(all, "\n")
	if len(in.Questions) != 1 || in.Questions[0].IsSecret {
		return
	}
	one := in.Questions[0]
	for i, o := range one.Options {
		id := strconv.Itoa(i + 1)
		q.Options = append(q.Options, ask.Option{ID: id, Label: o.Label, About: o.Description})
		q.results[id] = result(map[string]any{"answers": map[string]any{one.ID: map[string]any{"answers": []string{o.Label}}}})
	}
}

// shell matches a command that a shell runs, if it is quoted in the simplest way.
var shell = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/[\w./-]*/)?(?:ba|z)?sh -l?c (?:'([^']+)'|([\w./-]+))$`)
})

// inShell returns what the shell of a command runs. Else it returns the command as it is.
func inShell(command string) string {
	if m := shell().FindStringSubmatch(command); m != nil {
		return m[1] + m[2]
	}
	return command
}

// asksMore reports whether the approval is for more than to run Command.
func (a approval) asksMore() bool {
	isNone := func(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }
	isCommand := a.Kind == "" || a.Kind == "command"
	return !isCommand || !isNone(a.Network) || !isNone(a.More)
}

// toldWithin is how long the server may take to ask a client that has just come what it has asked the others, and to say
// that an answer counts. Tests change it.
var toldWithin = time.Second

// Questions has the connection be asked what a thread asks now, until one is asked for which isWanted holds, and returns all
// that it was asked. It resumes the thread.
func (c *Client) Questions(ctx context.Context, thread string, isWanted func(*Question) bool) (all []*Question, err error) {
	if _, err := c.Resume(ctx, thread); err != nil {
		return nil, err
	}
	err = c.listen(ctx, func(e Event) (isLast bool) {
		if e.Thread != thread || e.Request == "" {
			return false
		}
		q := newQuestion(e)
		if q == nil { // atm does not answer it
			return true
		}
		all = append(all, q)
		return isWanted(q)
	})
	return all, err
}

// listen takes events until the last one, or for a while.
func (c *Client) listen(ctx context.Context, take func(Event) (isLast bool)) error {
	late := time.After(toldWithin)
	for {
		select {
		case e, ok := <-c.Events():
			if !ok {
				return c.Err()
			}
			if take(e) {
				return nil
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Answer answers a question of a thread with one of its options. The question has to be asked still, in the same words, as far
// as the server says them; if a hook has told of it, under an id of ours. The model gets why with the answer; isGiven: it does.
func Answer(ctx context.Context, socket, thread string, q ask.Question, option ask.Option, why string) (isGiven bool, err error) {
	c, err := Dial(ctx, socket)
	if err != nil {
		return false, err
	}
	defer c.Close()
	isSame := func(now *Question) bool {
		isNamed := now.ID == q.ID || wire.IsID(q.ID)
		return isNamed && now.Tool == q.Tool && (now.Cut || now.Text() == q.Text())
	}
	all, err := c.Questions(ctx, thread, isSame)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, isSame)
	if i < 0 || !slices.Contains(all[i].Options, option) {
		return false, fmt.Errorf("%s: %w any more", q.ID, ask.ErrNoQuestion)
	}
	if why != "" { // before the answer, behind which the model goes on
		isGiven = c.Steer(ctx, thread, all[i].TurnID, string(wire.NewID()), why) == nil
	}
	if err := c.Answer(ctx, all[i].request, all[i].results[option.ID]); err != nil {
		return isGiven, err
	}
	return isGiven, c.listen(ctx, func(e Event) bool { return e.Method == "serverRequest/resolved" })
}
