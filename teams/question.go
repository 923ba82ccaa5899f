package teams

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Question is something that a member asks and that has no answer yet.
type Question struct {
	// ID tells it from others: a runner's is the id of the message to the lead as
	// well. "": whoever told of it gave none, and nobody can answer it from here.
	ID      string    `json:"id"`
	Agent   wire.Name `json:"agent"`
	Kind    string    `json:"kind"` // permission, prompt
	Prompt  string    `json:"prompt"`
	Tool    string    `json:"tool"`
	Input   string    `json:"input,omitempty"`  // what the tool is about to do, where the prompt is another thing
	Dialog  string    `json:"dialog,omitempty"` // as a screen shows it: permission, trust, question
	Options []Option  `json:"options"`
	Since   time.Time `json:"since"`
	Cut     bool      `json:"cut,omitempty"` // prompt or tool is not all there is

	Running bool `json:"running"` // under a runner, which can press the answer
}

// DialogTrust asks whether a directory is to be trusted. Only a person at the
// agent's terminal answers that.
const DialogTrust = "trust"

// Choose is the option that a word means: by its id, its label or a beginning of
// that, or its number in the list. With no options known any word is passed on.
func (q *Question) Choose(word string) (string, error) {
	if len(q.Options) == 0 {
		return word, nil
	}
	for _, o := range q.Options {
		if o.ID == word {
			return o.ID, nil
		}
	}
	var begins []Option
	for _, o := range q.Options {
		switch {
		case strings.EqualFold(o.Label, word):
			return o.ID, nil
		case len(o.Label) >= len(word) && word != "" && strings.EqualFold(o.Label[:len(word)], word):
			begins = append(begins, o)
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1].ID, nil
	}
	if len(begins) == 1 {
		return begins[0].ID, nil
	}
	return "", &OptionError{word, q.Options, len(begins) > 1}
}

// OptionError says that a word means none of the options, or several.
type OptionError struct {
	Word    string
	Options []Option
	Many    bool
}

func (e *OptionError) Error() string {
	var have []string
	for _, o := range e.Options {
		have = append(have, strings.TrimSpace(o.ID+" "+o.Label))
	}
	if e.Many {
		return fmt.Sprintf("%q is the beginning of several options; there are: %s", e.Word, strings.Join(have, ", "))
	}
	return fmt.Sprintf("no option %q; there are: %s", e.Word, strings.Join(have, ", "))
}

// Option is one of the answers that can be chosen.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// MessageID is the id of the message that tells the lead of the question.
func (q *Question) MessageID() (wire.ID, bool) { return wire.ID(q.ID), wire.IsID(q.ID) }

// Short is the id as people quote it.
func (q *Question) Short() string {
	if id, ok := q.MessageID(); ok {
		return id.Short(6)
	}
	return q.ID
}

// Questions are what a member asks now, the oldest first: in all sessions of
// its program, as its events tell. One that is off asks nothing any more.
func (t *Team) Questions(name wire.Name) ([]Question, error) {
	running, err := t.Running(name)
	if err != nil {
		return nil, err
	}
	s, err := t.State(name)
	if err != nil {
		return nil, err
	}
	roster, _ := t.Roster()
	return asked(name, s, running, roster.Members[name].Person, time.Now()), nil
}

func asked(name wire.Name, s *reducer.State, running, person bool, now time.Time) (out []Question) {
	switch s.Evaluate(reducer.Evidence{Now: now, Held: running, Person: person}).Word {
	case reducer.WordOff, reducer.WordPerson:
		return nil
	}
	for i := range s.Turns {
		turn := &s.Turns[i]
		if turn.IsPresumedEnded || turn.IsReplaced || turn.Activity == reducer.Exited {
			continue
		}
		for _, w := range turn.Requests {
			if w.Dialog == DialogTrust {
				w.Kind = reducer.Question // it asks for no tool, and nobody may answer it from here
			}
			out = append(out, Question{
				ID: w.ID, Agent: name, Kind: w.Kind, Prompt: w.Prompt, Tool: w.Tool, Input: w.Input, Dialog: w.Dialog, Options: optionsOf(w.Options),
				Since: w.Since.UTC(), Cut: w.Cut, Running: running,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Question) int { return a.Since.Compare(b.Since) })
	return out
}

// optionsOf reads options as a runner writes them, and as ACP does. What is
// none of these is left out; never nil.
func optionsOf(raw json.RawMessage) []Option {
	out := []Option{}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return out
	}
	for _, item := range list {
		var o struct{ ID, Label, OptionID, Name string }
		var word string
		switch {
		case json.Unmarshal(item, &word) == nil:
			o.ID, o.Label = word, word
		case json.Unmarshal(item, &o) != nil:
			continue
		}
		o.ID, o.Label = either(o.ID, o.OptionID), either(o.Label, o.Name)
		if o.ID != "" || o.Label != "" {
			out = append(out, Option{either(o.ID, o.Label), either(o.Label, o.ID)})
		}
	}
	return out
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Pending are the questions of all members, the oldest first. A member whose
// events cannot be read hides nobody else's; the error is about these.
func (t *Team) Pending() ([]Question, error) {
	names, err := t.Agents()
	if err != nil {
		return nil, err
	}
	var out []Question
	var errs []error
	for _, n := range names {
		list, err := t.Questions(n)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, fmt.Errorf("the questions of %s: %w", n, err))
		}
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b Question) int { return a.Since.Compare(b.Since) })
	return out, errors.Join(errs...)
}

// ErrNoQuestion is wrapped where nothing is asked that a word could mean.
var ErrNoQuestion = errors.New("no open question")

// ManyQuestionsError says that a word means several questions.
type ManyQuestionsError struct {
	Word      string
	Questions []Question
}

func (e *ManyQuestionsError) Error() string {
	return fmt.Sprintf("%q means %d open questions", e.Word, len(e.Questions))
}

// FindQuestion is the question that a word means among these: by its id, or a
// beginning or end of that, or by the name of who asks only that one thing.
func FindQuestion(list []Question, word string) (Question, error) {
	var found []Question
	for _, q := range list {
		if string(q.Agent) == word {
			found = append(found, q)
		}
	}
	if len(found) == 0 {
		f, bad := wire.ParseFragment(word)
		for _, q := range list {
			id, ok := q.MessageID()
			if q.ID != "" && q.ID == word || ok && bad == nil && f.Matches(id) {
				found = append(found, q)
			}
		}
	}
	switch len(found) {
	case 0:
		return Question{}, fmt.Errorf("%s: %w", strings.TrimSpace(word), ErrNoQuestion)
	case 1:
		return found[0], nil
	}
	return Question{}, &ManyQuestionsError{word, found}
}
