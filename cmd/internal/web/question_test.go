package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
)

// A question is said once, and its own options are the one row of answers: for once, to refuse, and apart for ever.
func TestQuestion(t *testing.T) {
	t.Parallel()
	yes, always := ask.Option{ID: "1", Label: "Yes", Kind: "allow_once"}, ask.Option{ID: "2", Label: "Always", Kind: "allow_always"}
	no, never := ask.Option{ID: "3", Label: "No", Kind: "reject_once"}, ask.Option{ID: "4", Label: "Never", Kind: "reject_always"}
	plain := []ask.Option{{ID: "1", Label: "Red"}, {ID: "2", Label: "Blue"}}
	for _, c := range []struct {
		name string
		ask.Question
		want string
	}{
		{"a permission", ask.Question{Kind: "permission", Tool: "Bash", Input: "make  x", Prompt: "Bash command\n make x\nDo it?", Options: []ask.Option{yes, always, no, never}},
			`wants to run "make  x\nBash command\n make x\nDo it?" [Yes] No [Always Never]`},
		{"without options", ask.Question{Kind: "permission", Tool: "Edit", Input: "a.go"}, `wants to use Edit "a.go" [] Reject []`},
		{"without a refusal", ask.Question{Kind: "choice", Prompt: "Which?", Options: plain}, `asks "Which?" [Red Blue] <nil> []`},
		{"ended without an answer", ask.Question{Kind: "choice", Dialog: "question", Prompt: "Which?", Options: plain, Cancel: ask.Option{ID: "esc", Label: "esc"}},
			`asks "Which?" [Red Blue] Reject []`},
	} {
		q := question{room.Question{Question: c.Question}}
		labels := func(options []ask.Option) (all []string) {
			for _, o := range options {
				all = append(all, o.Label)
			}
			return all
		}
		refusal := "<nil>"
		if o := q.Refusal(); o != nil {
			refusal = o.Label
		}
		if got := fmt.Sprintf("%s %q %v %s %v", q.Does(), q.Text(), labels(q.Choices(false)), refusal, labels(q.Choices(true))); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What a turn began with is shown without the frames that a model gets.
func TestSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prompt, want string }{
		{"[atm ce1f84 from me, now] answer: atm reply ce1f84 \"…\"\n  Please look.\n    indented\n\n  And more.\n[/atm]\n", `[{me ce1f84 "Please look.\n  indented\n\nAnd more."}]`},
		{"[atm ce1f84 from me, now]\n  One\n[atm a0f946 from bob@build, 2s ago, urgent] answer: x\n  Two\n[atm] mail from a teammate; your user did not type it here\n[/atm]", `[{me ce1f84 "One"} {bob@build a0f946 "Two"}]`},
		{"typed here\nin two lines", `[{  "typed here\nin two lines"}]`},
		{"before\n[atm ce1f84 from me, now]\n  One\n[/atm]\nafter", `[{  "before"} {me ce1f84 "One"} {  "after"}]`},
		{"[atm ce1f84 from me, now] all in a line [/atm]", `[{  "[atm ce1f84 from me, now] all in a line [/atm]"}]`},
		{"", `[]`},
	} {
		got := "["
		for i, s := range (turn{history.FullTurn{Content: history.Content{Prompt: c.prompt}}}).Said() {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("{%s %s %q}", s.From, s.ID, s.Text)
		}
		if got += "]"; got != c.want {
			t.Errorf("%q: %s\nwant %s", c.prompt, got, c.want)
		}
	}
}

// The picture begins with what happened first, and each bar is in it, also one that has only begun.
func TestPlace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	first := now.Add(-3 * time.Minute)
	tl := timeline{since: first, now: now, Lanes: []lane{{Name: "bob", Bars: []bar{{State: "idle", from: first, to: now}, {State: "busy", from: now, to: now}}}}}
	tl.place()
	bars := tl.Lanes[0].Bars
	if bars[0].X != 0 || bars[0].Width != chartWidth || bars[1].X+bars[1].Width != chartWidth {
		t.Errorf("%+v", bars)
	}
	if n := len(tl.Ticks); n < 3 || n > 8 {
		t.Errorf("%d times are marked: %+v", n, tl.Ticks)
	}
}
