package agents

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Permission is a request for a tool, whose program lets its hook answer.
type Permission struct {
	Event  wire.Event // opens the question
	ID     string     // the program's own of the question; "": it has none
	Tool   string
	Prompt string // what the tool is about to do, for whoever answers: at least Input

	// Options are the answers that the program takes; nil: yes or no. The rules take none that is for more than once.
	Options []ask.Option

	// IsChoice says that it asks its person to choose one of Options: no rule answers.
	IsChoice bool

	// What a rule sees: the whole command, path or address; for a tool that atm does not know all its arguments.
	Input     string
	IsCommand bool
	IsRisky   bool // it asks for more than that says: no rule may allow it
}

// A Choice is an answer that a program offers to a question of its own.
type Choice struct{ Label, Description string }

// Choices returns the options of a question: what its program offers, as long as a state keeps it, and to give no answer. nil: it
// offers nothing that can be said.
func Choices(offered []Choice) (options []ask.Option) {
	for i, c := range offered {
		if c.Label == "" {
			return nil
		}
		options = append(options, ask.Option{ID: strconv.Itoa(i + 1), Label: c.Label, About: wire.Clip(c.Description, MaxPrompt)})
	}
	if options == nil {
		return nil
	}
	return append(options, ask.Option{ID: "deny", Label: "No answer", Kind: "reject_once"})
}

// Chosen returns the label of the option that a verdict chooses; "": none.
func (p *Permission) Chosen(v Verdict) string {
	i := slices.IndexFunc(p.Options, func(o ask.Option) bool { return o.ID == v.Option })
	if v.IsDeny || i < 0 {
		return ""
	}
	return p.Options[i].Label
}

// Verdict is the answer to a Permission.
type Verdict struct {
	Option string // the id of the answer, if the program has its own
	IsDeny bool
	By     string // who has answered
	Reason string // of a denial; "": none
}

// Why tells the model who has denied what it asked for, and why; "": nobody has.
func (v Verdict) Why() string {
	switch {
	case !v.IsDeny:
		return ""
	case v.Reason == "":
		return fmt.Sprintf("%s %s says no", Prefix, v.By)
	}
	return fmt.Sprintf("%s %s says no: %s", Prefix, v.By, v.Reason)
}
