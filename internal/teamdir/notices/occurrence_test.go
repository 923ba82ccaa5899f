package notices

import (
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

func TestOccurrences(t *testing.T) {
	t.Parallel()
	bob, at := wire.Address{Agent: "bob", Team: "main"}, time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	event := func(kind string) watcher.Entry {
		return watcher.Entry{Address: bob, Event: &wire.Event{Seq: 7, At: at, Kind: kind}}
	}
	mail := func(priority string) watcher.Entry {
		return watcher.Entry{Address: bob, Message: &wire.Message{ID: "m", From: wire.Address{Agent: "alice", Team: "main"}, Subject: "Deploy?", Priority: priority}}
	}
	owed := func(ids ...wire.ID) (v view) {
		for _, id := range ids {
			v.owed = append(v.owed, &wire.Message{ID: id, Subject: string(id), From: wire.Address{Agent: "alice", Team: "main"}, DueAt: at})
		}
		v.at = at.Add(time.Hour)
		return v
	}
	idle, blocked := view{word: reducer.WordIdle}, view{word: reducer.WordBlocked, detail: "git push"}
	used := view{word: reducer.WordIdle, used: reducer.Figures{TotalTokens: 5}}
	for about, c := range map[string]struct {
		before, after view
		entry         watcher.Entry
		want          []string
	}{
		"nothing":                  {idle, idle, event(wire.TurnIdle), nil},
		"a state":                  {idle, blocked, event(wire.ConfirmRequired), []string{"blocked: bob is blocked: git push"}},
		"a state, of no event":     {idle, view{word: reducer.WordOff}, watcher.Entry{Address: bob}, []string{"off: bob is off"}},
		"no state to speak of":     {idle, view{word: reducer.WordUnknown}, event(wire.Exited), nil},
		"mail":                     {idle, idle, mail(""), []string{"mail: mail for bob from alice@main: Deploy?"}},
		"urgent mail":              {idle, idle, mail("urgent"), []string{"urgent-mail: urgent mail for bob from alice@main: Deploy?"}},
		"usage, and a state":       {blocked, used, event(wire.Usage), []string{"usage: bob has used 5 tokens", "idle: bob is idle"}},
		"an answer is overdue":     {owed("one"), owed("one", "two"), watcher.Entry{Address: bob}, []string{"overdue: bob owes alice@main an answer, due 1h ago: two"}},
		"an answer has come":       {owed("one"), owed(), watcher.Entry{Address: bob}, nil},
		"an answer is overdue yet": {owed("one"), owed("one"), watcher.Entry{Address: bob}, nil},
	} {
		var got []string
		keys := map[string]bool{}
		for _, o := range occurrences(c.before, c.after, c.entry) {
			got = append(got, o.Event+": "+o.Text)
			if keys[o.key] || o.Agent != "bob" {
				t.Errorf("%s: %+v", about, o)
			}
			keys[o.key] = true
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", about, got, c.want)
		}
	}
}
