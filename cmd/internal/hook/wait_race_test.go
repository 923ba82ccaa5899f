//go:build linux || darwin

package hook

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Of processes that are told of one question at the same time one waits, and it can be reached.
func TestToldAtOnce(t *testing.T) {
	a := newTeam(t, led)
	for i := range 25 {
		ctx, cancel := context.WithCancel(t.Context())
		q := question{Question: ask.Question{ID: fmt.Sprintf("per_%d", i), Prompt: "make", Tool: "Bash"}}
		q.event.Session = "s"
		const told = 3
		done := make(chan answered, told)
		for range told {
			go func() {
				done <- a.waits(ctx, q, asker{program: elsewhere})
			}()
		}
		for range told - 1 {
			if r := <-done; !errors.Is(r.err, errAsked) {
				t.Errorf("another one ends with %+v", r)
			}
		}
		var open []ask.Question
		for until := time.Now().Add(time.Minute); len(open) == 0; time.Sleep(5 * time.Millisecond) {
			var err error
			open, err = presence.Questions(a.team, "bob")
			must(t, err)
			if time.Now().After(until) {
				t.Fatal("nobody asks")
			}
		}
		if len(open) != 1 || !open[0].Served {
			t.Fatalf("the open questions are %+v", open)
		}
		must(t, a.answers(open[0], "lead", false, ""))
		if r := <-done; r.err != nil || r.Option != allowOnce.ID {
			t.Errorf("the first one ends with %+v", r)
		}
		cancel()
	}
}

// A rule answers the program also when its runner sees the dialog in that instant, and asks about it.
func TestRuleWhileSeen(t *testing.T) {
	a := newTeam(t, led+"[[rules]]\nagent = \"bob\"\ntool = \"Bash(make)\"\ndecision = \"allow\"\n")
	log := a.team.Box("bob").Log()
	for i := range 25 {
		begun, err := log.LastSeq()
		must(t, err)
		done := make(chan answered, 1)
		go func() { done <- a.waits(t.Context(), bash("make"), asker{onlyRules: true}) }()
		for last := begun; last == begun; last, err = log.LastSeq() {
			must(t, err)
		}
		seen := wire.Event{Kind: wire.ConfirmRequired, Source: wire.SourcePTY}
		must(t, log.Append(t.Context(), seen.With(wire.FieldID, fmt.Sprint("seen", i)).With("dialog", "permission").With("prompt", "Run make?")))
		if r := <-done; r.err != nil || r.By != ask.ByRule {
			t.Fatalf("round %d: got %+v", i, r)
		}
	}
}
