package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Question is something that a member asks and that has no answer yet: a
// permission, a choice, what somebody says to a draft.
type Question struct {
	// ID is also the id of the message to the lead when a runner asks. "": the
	// program gave none, and the question cannot be answered from here.
	ID      string    `json:"id"`
	Agent   wire.Name `json:"agent"` // bob@build of another host
	Kind    string    `json:"kind"`  // as reducer.Waiting has it, or KindDraft
	Prompt  string    `json:"prompt"`
	Tool    string    `json:"tool"`
	Input   string    `json:"input,omitempty"`  // what the tool is about to do, where the prompt does not say it
	Dialog  string    `json:"dialog,omitempty"` // as a screen shows it: permission, trust, question
	Options []Option  `json:"options"`
	Since   time.Time `json:"since"`
	Cut     bool      `json:"cut,omitempty"` // prompt or tool is not complete
	Call    string    `json:"tool_call_id,omitempty"`
	ByWire  bool      `json:"by_wire,omitempty"` // asked on a wire, where the answer goes as an event

	Host   wire.Name  `json:"host,omitempty"`
	SeenAt *time.Time `json:"seen_at,omitempty"` // when what that host asks came

	Running bool      `json:"running"` // under a runner, which can press the answer
	Session wire.UUID `json:"-"`       // of a draft; "": it was announced outside of any
}

// KindDraft is the kind of a question that asks what a person says to a draft; its ID is the draft's.
const KindDraft = "draft"

// DialogTrust asks whether a directory is to be trusted. Only a person at the agent's terminal answers that.
const DialogTrust = "trust"

// Option is one of the answers that can be chosen.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Kind  string `json:"kind,omitempty"` // ACP's allow_once, allow_always, reject_once, reject_always; "": not known
	About string `json:"description,omitempty"`
}

// Denies reports whether the option is known to refuse what is asked for.
func (o Option) Denies() bool { return strings.HasPrefix(o.Kind, "reject") }

// Short is the id as people quote it.
func (q *Question) Short() string {
	if wire.IsID(q.ID) || q.Kind == KindDraft {
		return wire.ID(q.ID).Short(6)
	}
	return q.ID
}

// Asks says in one line what is asked for: "wants to run: git push", "wants to use Edit: a.go", "asks: Which branch?".
func (q *Question) Asks() string {
	what := strings.Join(strings.Fields(cmp.Or(q.Input, q.Prompt)), " ")
	switch {
	case q.Kind != "permission" || q.Tool == "":
		return "asks: " + what
	case what == "":
		return "wants to use " + q.Tool
	case strings.EqualFold(q.Tool, "bash"), strings.EqualFold(q.Tool, "shell"):
		return "wants to run: " + what
	}
	return "wants to use " + q.Tool + ": " + what
}

// Choose returns the id of the option that a word means: its id, else its label, its number, or what only
// its label begins with. If no options are known, any word is passed on.
func (q *Question) Choose(word string) (string, error) {
	if len(q.Options) == 0 {
		return word, nil
	}
	at := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == word })
	if at < 0 {
		at = slices.IndexFunc(q.Options, func(o Option) bool { return strings.EqualFold(o.Label, word) })
	}
	if n, err := strconv.Atoi(word); at < 0 && err == nil && n <= len(q.Options) {
		at = n - 1
	}
	if at >= 0 {
		return q.Options[at].ID, nil
	}
	var have, begins []string
	for _, o := range q.Options {
		if word != "" && strings.HasPrefix(strings.ToLower(o.Label), strings.ToLower(word)) {
			begins = append(begins, o.ID)
		}
		have = append(have, strings.TrimSpace(o.ID+" "+o.Label))
	}
	if len(begins) == 1 {
		return begins[0], nil
	}
	return "", fmt.Errorf("%q is not one option; there are: %s", word, strings.Join(have, ", "))
}

// OnlyAtTerminal says why nobody can answer the question from elsewhere, and the command that helps; "": it
// can be answered.
func (q *Question) OnlyAtTerminal() (why, hint string) {
	if q.Kind == KindDraft || q.ByWire && q.ID != "" {
		return "", ""
	}
	name, isThere := strings.CutSuffix(string(q.Agent), "@"+string(q.Host))
	at := ""
	if isThere {
		at = "there: "
	}
	if !q.Running {
		return "runs under no runner, only its own terminal can answer", at + "next time atm run " + name
	}
	if q.ID == "" || q.Dialog == DialogTrust {
		return "asks what only a person at its terminal can answer", at + "atm attach " + name
	}
	return "", ""
}

// ParseOptions reads options as a runner writes them, with their kinds, or byWire, as
// ACP does. What is neither is left out; never nil.
func ParseOptions(raw json.RawMessage, byWire bool) []Option {
	out := []Option{}
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list)
	for _, item := range list {
		var o struct{ ID, Label, OptionID, Name, Kind, Description string }
		_ = json.Unmarshal(item, &o)
		id, label := cmp.Or(o.ID, o.OptionID), cmp.Or(o.Label, o.Name)
		if id != "" || label != "" {
			if byWire && o.Kind == "" {
				o.Kind = wire.OptionKind(id, label)
			}
			out = append(out, Option{ID: cmp.Or(id, label), Label: cmp.Or(label, id), Kind: o.Kind, About: o.Description})
		}
	}
	return out
}

// ErrNoQuestion is wrapped by the error for a word that means no open question.
var ErrNoQuestion = errors.New("no open question")

// ManyQuestionsError is the error for a word that means several questions.
type ManyQuestionsError struct {
	Word      string
	Questions []Question
}

func (e *ManyQuestionsError) Error() string {
	return fmt.Sprintf("%q means %d open questions", e.Word, len(e.Questions))
}

// Find returns the question that a word means: the only one of the member of
// that name, or the one with that id or four or more digits of it.
func Find(list []Question, word string) (Question, error) {
	fragment, bad := wire.ParseFragment(word)
	hasOtherID := func(q Question) bool {
		return q.ID == "" || !strings.EqualFold(q.ID, word) && (bad != nil || !fragment.Matches(wire.ID(q.ID)))
	}
	found := slices.DeleteFunc(slices.Clone(list), func(q Question) bool { return string(q.Agent) != word })
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(list), hasOtherID)
	}
	switch len(found) {
	case 0:
		return Question{}, fmt.Errorf("%s: %w", word, ErrNoQuestion)
	case 1:
		return found[0], nil
	}
	return Question{}, &ManyQuestionsError{word, found}
}
