// Package ask has what a program asks, what may be answered, and an answer: everywhere the same three types, and one
// function that says which option an answer means (Question.Pick).
package ask

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Question is an open question of a member: a permission request, a choice, or a draft to approve.
type Question struct {
	// ID is also the id of the message to the lead if a runner asks. "": the program gave none, and the question cannot
	// be answered through atm.
	ID      string    `json:"id"`
	Agent   wire.Name `json:"agent"`        // bob@build if on another host
	Kind    string    `json:"kind"`         // a kind of reducer.Waiting, KindDraft or KindMail
	To      wire.Name `json:"to,omitempty"` // who is asked, if only they may answer: of KindMail
	Prompt  string    `json:"prompt"`
	Tool    string    `json:"tool"`
	Input   string    `json:"input,omitempty"`  // what the tool is about to do, if it was told beside the prompt
	Dialog  string    `json:"dialog,omitempty"` // the kind of dialog on the screen: permission, trust, question, unknown
	Options []Option  `json:"options"`
	Since   time.Time `json:"since"`
	Cut     bool      `json:"cut,omitempty"` // Prompt or Tool is incomplete
	Call    string    `json:"tool_call_id,omitempty"`
	ByWire  bool      `json:"by_wire,omitempty"` // asked by an event, and answered by one

	Host   wire.Name  `json:"host,omitempty"`
	SeenAt *time.Time `json:"seen_at,omitempty"` // when that host's rows arrived

	Running bool      `json:"running"`          // the agent has a runner, which can type the answer
	Served  bool      `json:"served,omitempty"` // a process of the program that asks waits for the answer (cmd/internal/hook), or its server does
	Session wire.UUID `json:"-"`                // of a draft, or the one in which a message answers it; "": it is outside any

	OnChannel bool `json:"on_channel,omitempty"` // asked on the agent's session channel: a message answers it

	// Of a dialog on a screen.
	Fingerprint string `json:"-"` // stays the same while the same dialog is there
	Cancel      Option `json:"-"` // ends it without an answer, if that is not one of Options; the zero Option: nothing does
}

// An Answer is an answer to a question.
type Answer struct {
	ID       string    `json:"id,omitempty"`     // of the question; "": the open one
	Since    time.Time `json:"since,omitzero"`   // of the question; zero: any
	Option   string    `json:"option,omitempty"` // see Question.Pick
	Deny     bool      `json:"deny,omitempty"`
	Reason   string    `json:"reason,omitempty"` // of a rejection, for the model
	By       string    `json:"by,omitempty"`     // the name of whoever answers, or ByRule
	Artifact string    `json:"-"`                // the URI of the part of a draft that it is about; "": the whole draft
}

// ByRule is who answers if a rule of team.toml does.
const ByRule = "a rule"

// Decision is what the events of an answer call it.
func (a Answer) Decision() string {
	if a.Deny {
		return "reject"
	}
	return "approve"
}

// KindDraft is the kind of a question that asks whether to approve a draft; its ID is the draft's.
const KindDraft = "draft"

// KindMail is the kind of a question that a message to a person asks, with choices; its ID is the message's.
const KindMail = "mail"

// Option is one of the answers to a question.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Kind  string `json:"kind,omitempty"` // ACP's allow_once, allow_always, reject_once, reject_always; "": unknown
	About string `json:"description,omitempty"`
	Keys  string `json:"-"` // the bytes that choose it on a screen; "": unknown
}

// Denies reports whether the option is known to refuse the request.
func (o Option) Denies() bool { return strings.HasPrefix(o.Kind, "reject") }

// AllowsOnce reports whether the option is known to allow this one call only.
func (o Option) AllowsOnce() bool { return o.Kind == "allow_once" }

// Once returns the option that allows this one call, or denies it, as a rule may; nil: none is known to. An option for longer
// is a person's to choose.
func (q *Question) Once(denies bool) *Option {
	kind := "allow_once"
	if denies {
		kind = "reject_once"
	}
	if i := slices.IndexFunc(q.Options, func(o Option) bool { return o.Kind == kind }); i >= 0 {
		return &q.Options[i]
	}
	return nil
}

// IsTyped reports whether a program asks on its screen for any text, as a shell's read does: it is answered by typing.
func (q *Question) IsTyped() bool { return q.Dialog == "question" && len(q.Options) == 0 && !q.Served }

// Key tells it from others, and stays the same while it waits.
func (q *Question) Key() string { return fmt.Sprintf("%s-%x", q.Agent, q.Since.UnixNano()) }

// Short returns the id as people quote it.
func (q *Question) Short() string {
	if wire.IsID(q.ID) || q.Kind == KindDraft {
		return wire.ID(q.ID).Short(6)
	}
	return q.ID
}

// Text is what it asks, whole: what the tool is about to do, and below that the prompt, unless that says no more. Every front
// shows this, some in one line: a yes counts for what was shown.
func (q *Question) Text() string {
	if q.repeats() {
		return strings.TrimSpace(q.Input)
	}
	return strings.TrimSpace(q.Input + "\n" + q.Prompt)
}

// Line is the tool and Text in one line, not escaped: "Bash: git push".
func (q *Question) Line() string { return inLine(q.Tool, q.textInLine()) }

func (q *Question) textInLine() string {
	if q.repeats() {
		return inLine(q.Input)
	}
	return inLine(q.Input, q.Prompt)
}

// repeats reports whether the prompt says no more than what the tool is about to do.
func (q *Question) repeats() bool { return strings.Contains(inLine(q.Input), inLine(q.Prompt)) }

// inLine makes one line of those parts that say something.
func inLine(parts ...string) string {
	var all []string
	for _, part := range parts {
		if words := strings.Fields(part); len(words) > 0 {
			all = append(all, strings.Join(words, " "))
		}
	}
	return strings.Join(all, ": ")
}

// Of is the question that a state has, as far as the state knows it.
func Of(w reducer.Waiting) Question {
	return Question{
		ID: w.ID, Kind: w.Kind, Prompt: w.Prompt, Tool: w.Tool, Input: w.Input, Dialog: w.Dialog,
		Options: ParseOptions(w.Options, w.IsOnWire), Since: w.Since.UTC(), Cut: w.IsIncomplete, Call: w.ToolCallID, OnChannel: w.IsOnChannel,
	}
}

// Left says that its terminal may show more than Text; "": all is known.
func (q *Question) Left() string {
	if q.Cut {
		return "its terminal may show more"
	}
	return ""
}

// Summary describes the question in one line, in the same words everywhere: "wants to run: git push", "wants to use Edit: a.go",
// "asks: Which branch?". What the agent wrote is the end of it, and not escaped.
func (q *Question) Summary() string {
	return inLine(q.Does(), q.textInLine())
}

// Brief is Summary for the middle of a line: escaped, with at most n characters of what the agent wrote, and in quotes if
// it has what separates the words of a line: `wants to run: "git push; make"`.
func (q *Question) Brief(n int) string {
	return inLine(q.Does(), letter.Name(q.textInLine(), n))
}

// Does is what the agent does: "asks", "wants to run", "wants to use Edit", "has a draft".
func (q *Question) Does() string {
	switch {
	case q.Kind == KindDraft:
		return "has a draft"
	case q.Kind == reducer.ClientTool && q.Tool != "":
		return "wants to use " + letter.Name(q.Tool, 80)
	case q.Kind != reducer.Permission, q.Dialog == "question", q.Tool == "", q.Cut && q.Input == "": // what its dialog shows, which is more than a command
		return "asks"
	case q.Text() != "" && slices.Contains([]string{"bash", "shell", "execute"}, strings.ToLower(q.Tool)):
		return "wants to run"
	}
	return "wants to use " + letter.Name(q.Tool, 80)
}

// A PickError says why an answer means none of the options, and what may be tried.
type PickError struct {
	Message string
	Option  string // with this option
	Deny    bool   // as a rejection
}

func (e *PickError) Error() string { return e.Message }

// Pick returns the option that an answer means. Its word means an option by its id, else by its label, its number, or an
// unambiguous beginning of its label; an option that does the opposite of the answer is refused, and so is a rejection
// with one that is not known to deny. Without known options it is the word itself. Without a word it is the option that
// allows this one call, or denies it. The errors are *PickError.
func (q *Question) Pick(a Answer) (Option, error) {
	if a.Option == "" {
		return q.pickUnnamed(a.Deny)
	} else if len(q.Options) == 0 {
		return Option{ID: a.Option, Label: a.Option}, nil
	}
	o, err := q.named(a.Option)
	switch {
	case err != nil:
		return o, err
	case a.Deny && !o.Denies():
		return o, &PickError{fmt.Sprintf("%q does not say no", o), o.ID, false}
	case !a.Deny && o.Denies() && q.Dialog != "question":
		return o, &PickError{fmt.Sprintf("%q says no", o), o.ID, true}
	}
	return o, nil
}

func (q *Question) named(word string) (Option, error) {
	var matching []Option
	if i := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == word }); i >= 0 {
		return q.Options[i], nil
	}
	for i, o := range q.Options {
		if strings.EqualFold(o.Label, word) || strconv.Itoa(i+1) == word {
			return o, nil
		}
		if strings.HasPrefix(strings.ToLower(o.Label), strings.ToLower(word)) {
			matching = append(matching, o)
		}
	}
	if len(matching) == 1 {
		return matching[0], nil
	}
	return Option{}, &PickError{Message: fmt.Sprintf("%q is not one of the options: %s", word, q.ListOptions())}
}

// pickUnnamed returns the option that allows this one call, or denies it. Of a question the agent has written the options:
// exactly one must be a yes, and to end it without an answer is better than a no, since "No tests" is an answer.
func (q *Question) pickUnnamed(denies bool) (Option, error) {
	fits := Option.AllowsOnce
	if denies {
		fits = Option.Denies
	}
	found := slices.DeleteFunc(slices.Clone(q.Options), func(o Option) bool { return !fits(o) })
	isQuestion := q.Dialog == "question"
	switch {
	case denies && q.Cancel.ID != "" && (isQuestion || len(found) == 0):
		return q.Cancel, nil
	case denies && q.Once(true) != nil:
		return *q.Once(true), nil
	case len(found) == 1, len(found) > 1 && (denies || !isQuestion):
		return found[0], nil
	case denies:
		return Option{}, &PickError{Message: "none of its options says no: " + q.ListOptions()}
	case len(q.Options) == 0:
		return Option{}, &PickError{Message: "its options are not known"}
	}
	return Option{}, &PickError{Message: "which one? " + q.ListOptions(), Option: q.Options[0].ID}
}

// MaxLabel is longer, in characters, than what a state keeps of an option: who says yes has to see to what.
const MaxLabel = 4000

// String is the option as people quote it, whole.
func (o Option) String() string {
	if o.ID == o.Label {
		return letter.OneLine(o.ID, MaxLabel)
	}
	return letter.OneLine(o.ID+" "+o.Label, MaxLabel)
}

// Words is the label and what it is about, whole and escaped.
func (o Option) Words() string {
	words := letter.Name(cmp.Or(o.Label, o.ID), MaxLabel)
	if o.About != "" {
		words += " (" + letter.Name(o.About, MaxLabel) + ")"
	}
	return words
}

// ListOptions lists the options in one line.
func (q *Question) ListOptions() string {
	var all []string
	for _, o := range q.Options {
		all = append(all, o.String())
	}
	return strings.Join(all, ", ")
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

// Find returns the question that a word matches: the only one of the member with that name, or the only one that no message
// answers, else the one with that id or a fragment of it. ErrNoQuestion or a *ManyQuestionsError if there is not exactly one.
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
