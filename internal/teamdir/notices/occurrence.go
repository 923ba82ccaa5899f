package notices

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Occurrence is something that happened to a member: a command of [[on]] is run for it, or mail sent to who subscribed. Its
// JSON is the command's stdin.
type Occurrence struct {
	Event   string        `json:"event"` // see config.OnEvents
	Agent   wire.Name     `json:"agent"`
	Team    wire.Name     `json:"team"`
	Root    string        `json:"root"`
	At      time.Time     `json:"at"`
	Text    string        `json:"text"` // one line about it, for people
	Detail  string        `json:"detail,omitempty"`
	Message *wire.Message `json:"message,omitempty"`

	// Usage is what the member has used, of a limit that it has reached.
	Usage *reducer.Figures `json:"usage,omitempty"`

	before reducer.Figures // what it had used before
	key    string          // tells it from all others of the member
}

// A view is a member at one moment.
type view struct {
	at     time.Time
	word   reducer.Word
	detail string // what the word is about
	used   reducer.Figures
	owed   []*wire.Message // the messages whose answers by the member are overdue
}

// viewOf is the view of a member's events.
func viewOf(s *reducer.State) view {
	v := view{word: s.Word(), used: s.Used(), detail: presence.InWords(s.Word(), s.Session().Detail)}
	if requests := s.Requests(); len(requests) > 0 {
		q := ask.Of(requests[0])
		v.detail = q.Brief(200)
	}
	return v
}

// occurrences returns what has happened to a member between two views of it, by what its watcher has brought, if that
// brought anything: it came into a state, mail came, its usage grew, an answer became overdue.
func occurrences(before, after view, e watcher.Entry) (all []Occurrence) {
	name := e.Address.Agent
	add := func(o Occurrence, text string) {
		if o.Agent, o.At, o.Text = name, after.at, text; e.Event != nil {
			o.At, o.key = e.Event.At, o.key+fmt.Sprintf("%d-%d", e.Event.Seq, e.Event.At.UnixNano())
		}
		o.At = o.At.UTC()
		all = append(all, o)
	}
	if m := e.Message; m != nil {
		event := config.OnMail
		if m.Urgent() {
			event = config.OnUrgentMail
		}
		text := fmt.Sprintf("%s for %s from %s: %s", strings.ReplaceAll(event, "-", " "), name, m.From, letter.OneLine(m.Title(), 200))
		add(Occurrence{Event: event, Message: m, key: string(m.ID)}, text)
	}
	if e.Event != nil && e.Event.Kind == wire.Usage {
		text := fmt.Sprintf("%s has used %s", name, presence.Used(after.used))
		add(Occurrence{Event: config.OnUsage, Usage: &after.used, before: before.used, key: "usage-"}, text)
	}
	if after.word != before.word && slices.Contains(config.OnStates, after.word) {
		text := strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, after.word, letter.OneLine(after.detail, 200)), ": ")
		add(Occurrence{Event: string(after.word), Detail: after.detail}, text)
	}
	for _, m := range after.owed {
		if !slices.ContainsFunc(before.owed, func(old *wire.Message) bool { return old.ID == m.ID }) {
			text := fmt.Sprintf("%s owes %s an answer, due %s: %s", name, m.From, letter.Age(after.at, m.DueAt), letter.OneLine(m.Title(), 200))
			add(Occurrence{Event: config.OnOverdue, Message: m, key: "overdue-" + string(m.ID)}, text)
		}
	}
	return all
}

// isFor reports whether a command is to be run for the occurrence.
func (o Occurrence) isFor(on config.On) bool {
	return on.Matches(o.Event) && (o.Usage == nil || on.IsReached(o.before, *o.Usage))
}
