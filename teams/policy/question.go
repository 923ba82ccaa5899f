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

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Question is an open question of a member: a permission request, a choice, or a draft to approve.
type Question struct {
	// ID is also the id of the message to the lead if a runner asks. "": the program gave none, and the question cannot
	// be answered through atm.
	ID      string    `json:"id"`
	Agent   wire.Name `json:"agent"` // bob@build if on another host
	Kind    string    `json:"kind"`  // a kind of reducer.Waiting, or KindDraft
	Prompt  string    `json:"prompt"`
	Tool    string    `json:"tool"`
	Input   string    `json:"input,omitempty"`  // what the tool is about to do, if the prompt does not say it
	Dialog  string    `json:"dialog,omitempty"` // the kind of dialog on the screen: permission, trust, question, unknown
	Options []Option  `json:"options"`
	Since   time.Time `json:"since"`
	Cut     bool      `json:"cut,omitempty"` // Prompt or Tool is incomplete
	Call    string    `json:"tool_call_id,omitempty"`
	ByWire  bool      `json:"by_wire,omitempty"` // asked by an event, and answered by one

	Host   wire.Name  `json:"host,omitempty"`
	SeenAt *time.Time `json:"seen_at,omitempty"` // when that host's rows arrived

	Running bool      `json:"running"`          // the agent has a runner, which can type the answer
	Served  bool      `json:"served,omitempty"` // a process of the program that asks waits for the answer (cmd/internal/question)
	Session wire.UUID `json:"-"`                // of a draft, or the one in which a message answers it; "": it is outside any

	OnChannel bool `json:"on_channel,omitempty"` // asked on the agent's session channel: a message answers it
}

// wholeWithin is how long a runner may take to see on the screen what its agent's program has reported as asked.
const wholeWithin = 10 * time.Second

// IsWhole reports whether everything is known that will be. A runner gives a question its id and its options; one that it
// does not see within wholeWithin gets none.
func (q *Question) IsWhole(now time.Time) bool {
	return !q.Running || q.ID != "" || q.OnChannel || now.Sub(q.Since) > wholeWithin
}

// KindDraft is the kind of a question that asks whether to approve a draft; its ID is the draft's.
const KindDraft = "draft"

// Option is one of the answers to a question.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Kind  string `json:"kind,omitempty"` // ACP's allow_once, allow_always, reject_once, reject_always; "": unknown
	About string `json:"description,omitempty"`
}

// Denies reports whether the option is known to refuse the request.
func (o Option) Denies() bool { return strings.HasPrefix(o.Kind, "reject") }

// Short returns the id as people quote it.
func (q *Question) Short() string {
	if wire.IsID(q.ID) || q.Kind == KindDraft {
		return wire.ID(q.ID).Short(6)
	}
	return q.ID
}

// Summary describes the question in one line: "wants to run: git push", "wants to use Edit: a.go", "asks: Which
// branch?". What the agent wrote is the end of it, and not escaped.
func (q *Question) Summary() string {
	does, what := q.words()
	return strings.TrimSuffix(does+": "+what, ": ")
}

// Brief is Summary for the middle of a line: escaped, with at most n characters of what the agent wrote, and in quotes if
// it has what separates the words of a line: `wants to run: "git push; make"`.
func (q *Question) Brief(n int) string {
	does, what := q.words()
	return strings.TrimSuffix(does+": "+letter.Name(what, n), ": ")
}

// words are what the agent does, and its own words.
func (q *Question) words() (does, what string) {
	what = strings.Join(strings.Fields(cmp.Or(q.Input, q.Prompt)), " ")
	switch {
	case q.Kind != "permission" || q.Tool == "":
		return "asks", what
	case what != "" && slices.Contains([]string{"bash", "shell", "execute"}, strings.ToLower(q.Tool)):
		return "wants to run", strings.TrimPrefix(what, "Run: ") // with which an ACP agent may begin the title of a call
	}
	return "wants to use " + letter.Name(q.Tool, 80), what
}

// Choose returns the id of the option that a word selects: by its id, else by its label, its number, or an unambiguous
// beginning of its label. Without known options it returns the word itself.
func (q *Question) Choose(word string) (string, error) {
	if len(q.Options) == 0 {
		return word, nil
	}
	for _, o := range q.Options {
		if o.ID == word {
			return word, nil
		}
	}
	var all, matching []string
	for i, o := range q.Options {
		if strings.EqualFold(o.Label, word) || strconv.Itoa(i+1) == word {
			return o.ID, nil
		}
		if word != "" && strings.HasPrefix(strings.ToLower(o.Label), strings.ToLower(word)) {
			matching = append(matching, o.ID)
		}
		all = append(all, strings.TrimSpace(o.ID+" "+o.Label))
	}
	if len(matching) == 1 {
		return matching[0], nil
	}
	return "", fmt.Errorf("%q is not one of the options: %s", word, strings.Join(all, ", "))
}

// ParseOptions reads options as a runner writes them or, byWire, as ACP does, and skips what is neither. The result is
// never nil.
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
				o.Kind = foreign.OptionKind(id, label)
			}
			out = append(out, Option{ID: cmp.Or(id, label), Label: cmp.Or(label, id), Kind: o.Kind, About: o.Description})
		}
	}
	return out
}

// ErrNoQuestion says that a word matches no open question.
var ErrNoQuestion = errors.New("no open question")

// ManyQuestionsError says that a word matches several questions.
type ManyQuestionsError struct {
	Word      string
	Questions []Question
}

func (e *ManyQuestionsError) Error() string {
	return fmt.Sprintf("%q matches %d open questions", e.Word, len(e.Questions))
}

// Find returns the question that a word matches: the only one of the member with that name, or the only one that no
// message answers, else the one with that id or a fragment of it. ErrNoQuestion or a *ManyQuestionsError if there is not exactly one.
func Find(list []Question, word string) (Question, error) {
	fragment, bad := wire.ParseFragment(word)
	hasOtherID := func(q Question) bool {
		return q.ID == "" || !strings.EqualFold(q.ID, word) && (bad != nil || !fragment.Matches(wire.ID(q.ID)))
	}
	found := slices.DeleteFunc(slices.Clone(list), func(q Question) bool { return string(q.Agent) != word })
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(list), hasOtherID)
	}
	byMessage := func(q Question) bool { return q.OnChannel }
	if others := slices.DeleteFunc(slices.Clone(found), byMessage); len(others) > 0 {
		found = others
	}
	switch len(found) {
	case 0:
		return Question{}, fmt.Errorf("%s: %w", word, ErrNoQuestion)
	case 1:
		return found[0], nil
	}
	return Question{}, &ManyQuestionsError{word, found}
}
