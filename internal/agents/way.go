package agents

// A Way leads into a program of a vendor's. A vendor lists them, the best first.
type Way struct {
	By      string   // ByHook, ByPlugin, or what Session.Open opens, by a name of the vendor's own
	At      []string // of Moments: when it takes something in at once
	Needs   string   // in a few words; "": the hooks that atm install writes
	Receipt string   // what shows that the model has got it
	Proven  []string // the versions that it was tried with
	Test    string   // that tries it, in cmd/internal/realagents
}

// The ways that the program takes by itself.
const (
	ByHook   = "hook"   // mail is in its hooks' answers
	ByPlugin = "plugin" // what runs in it takes mail from the inbox
)

// ByPane is the way into a program that its person started in a pane of tmux: a process of atm's types the mail in.
const ByPane = "tmux pane"

// InPane is that way, for a program whose hooks run in its own environment.
var InPane = Way{
	By: ByPane, At: []string{AtIdle}, Needs: "a pane of tmux, an empty box, and no key for three seconds", Receipt: "the hook of the prompt with the text", Test: "TestInPane",
}

// The moments at which mail or an answer may come.
const (
	AtIdle     = "idle"     // at its prompt: begins a turn
	AtBusy     = "busy"     // in a turn: behind the tool that runs
	AtEnd      = "end"      // at the end of a turn: goes on with it
	AtQuestion = "question" // it asks, and takes an answer from elsewhere
)

// Moments are all of them.
var Moments = []string{AtIdle, AtBusy, AtEnd, AtQuestion}
