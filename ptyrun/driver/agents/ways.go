package agents

import (
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/tomlfile"
)

// A Way leads into a program that its person has started by hand. A file lists a program's ways, the best first.
type Way struct {
	By      string   // of WayNames
	At      []string // of Moments: when it takes something in at once
	Needs   string   // in a few words; "": the hooks that atm install writes
	Receipt string   // what shows that the model has got it
	Proven  []string // the versions that it was tried with
	Test    string   // that tries it, in cmd/internal/realagents
}

// The ways that there are.
const (
	InboxSocket = "inbox socket" // the program listens for messages of other sessions
	ServerQueue = "server queue" // its server takes what its next turn begins with
	Plugin      = "plugin"       // runs in the program
	Hook        = "hook"         // its hooks' answers
	Typed       = "typed"        // keys, only under atm run
)

// The moments at which mail or an answer may come.
const (
	AtIdle     = "idle"     // at its prompt: begins a turn
	AtBusy     = "busy"     // in a turn: behind the tool that runs
	AtEnd      = "end"      // at the end of a turn: goes on with it
	AtQuestion = "question" // it asks, and takes an answer from elsewhere
)

// WayNames and Moments are the words that a way may use.
var (
	WayNames = []string{InboxSocket, ServerQueue, Plugin, Hook, Typed}
	Moments  = []string{AtIdle, AtBusy, AtEnd, AtQuestion}
)

func (k *checker) checkWays(ways []Way) {
	k.checkLength("ways", len(ways))
	for i, w := range ways {
		line := k.lines.Of(fmt.Sprintf("ways.%d", i))
		k.checkWord(line, "ways.by", w.By, WayNames)
		for _, moment := range w.At {
			k.checkWord(line, "ways.at", moment, Moments)
		}
	}
}

// WaysOf returns the ways into a program, by the name of its built-in driver, without reading the rest of that. A person's
// own driver says how a program looks, not how it is reached.
func WaysOf(name string) []Way {
	if !slices.Contains(builtInNames(), name) {
		return nil
	}
	text, _ := embedded.ReadFile(name + ".toml")
	var f struct{ Ways []Way }
	tomlfile.DecodePart(text, &f)
	return f.Ways
}
