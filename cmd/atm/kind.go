package main

import (
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/wire"
)

// noPair explains a word after the kind that is no k=v: somebody else's name
// before the kind, above all.
func (e *env) noPair(kind, word string) error {
	err := cmdline.Usage("%q is no k=v", word)
	said := eventFor(word)
	switch {
	case slices.Contains(wire.Kinds(), word):
		said = word
	case said == "":
		fields := wire.FieldsOf(kind)
		if near, ok := cmdline.Nearest(word, fields); ok {
			return err.WithHint("atm event %s %s=VALUE", kind, near)
		}
		if len(fields) > 0 {
			return err.WithHint("atm event %s %s=%s", kind, fields[0], example(word))
		}
		return err.WithHint("atm event %s %s=VALUE", cmdline.Escape(kind), cmdline.Escape(word))
	}
	if slices.Contains(wire.Kinds(), kind) {
		return err.WithHint("atm event %s", said)
	}
	return err.WithHint("atm event %s --as %s", said, cmdline.Escape(kind))
}

// example is a word as a value in a hint, if it could stand there unquoted.
func example(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-") == "" {
		return word
	}
	return "VALUE"
}

// explainEvent names the way out where an event cannot be made.
func (e *env) explainEvent(kind string, pairs [][2]string, err error) error {
	c := cmdline.Usage("%v", err)
	if strings.Contains(kind, "=") {
		return c.WithHint("the kind comes first: atm event turn_started turn_id=7")
	}
	word := strings.ReplaceAll(strings.ToLower(kind), "-", "_")
	if near, ok := cmdline.Nearest(word, wire.Kinds()); ok && kind != near {
		return c.WithHint("atm event %s", near).WithCandidates(near)
	}
	for _, p := range pairs {
		if kind == "state_change" && p[0] == "new" {
			if said := eventFor(p[1]); said != "" {
				return c.WithHint("atm event %s", said)
			}
		}
	}
	return c.WithHint("atm help event")
}

// warnKind says that a kind is a state, or looks misspelt.
func (e *env) warnKind(kind string) {
	known := wire.Kinds()
	if slices.Contains(known, kind) {
		return
	}
	near, ok := cmdline.Nearest(kind, known)
	switch said := eventFor(kind); {
	case said != "":
		word, _, _ := strings.Cut(said, " ")
		e.Warn("%q is a state and no kind of event; did you mean %s? atm help event lists them", kind, word)
	case ok:
		e.Warn("%q means nothing to atm; did you mean %s?", kind, near)
	}
}

// warnFields names the fields from which nothing is made.
func (e *env) warnFields(kind string, pairs [][2]string) {
	fields := wire.FieldsOf(kind)
	for _, p := range pairs {
		if wire.Means(kind, p[0]) {
			continue
		}
		near, ok := cmdline.Nearest(p[0], fields)
		switch {
		case p[0] == "id" && !ok, p[0] == "turnid":
			near, ok = "turn_id", true
		case kind == "state_change" && (p[0] == "state" || p[0] == "to"):
			near, ok = "new", true
		case kind == "state_change" && p[0] == "from":
			near, ok = "previous", true
		}
		if ok {
			e.Warn("%s of %s is kept and means nothing to atm; did you mean %s?", p[0], kind, near)
		} else {
			e.Warn("%s of %s is kept and means nothing to atm; its fields: %s", p[0], kind, strings.Join(fields, ", "))
		}
	}
}

// warnOther says that an event names somebody else than the log that it goes
// to, where it stays; it reports whether it did.
func (e *env) warnOther(ev *wire.Event) bool {
	name := ev.Names()
	a, err := wire.ParseAddress(name, e.team.Name)
	if err != nil || a == e.me.Address() {
		return false
	}
	e.Warn("an event names %s, and goes into the log of %s: --as %s, or --stdin --route, writes into theirs", name, e.me.Agent(), name)
	return true
}

// eventFor is the event that puts an agent into a state which somebody named
// instead of a kind, as it is typed; "" for no state.
func eventFor(word string) string {
	switch word {
	case "busy", "running", "working", "active", "started", "start":
		return "turn_started turn_id=7"
	case "idle", "ready":
		return "turn_idle"
	case "done", "completed", "complete", "finished", "terminal", "stopped":
		return "turn_completed status=completed"
	case "failed", "interrupted":
		return "turn_completed status=" + word
	case "blocked", "permission":
		return "confirm_required tool=Bash"
	case "question", "waiting":
		return "waiting_for_input prompt=Which?"
	case "online":
		return "session_start source=startup"
	case "off", "offline":
		return "session_end reason=done"
	case "unknown", "starting", "thinking", "responding", "tool_running", "awaiting_input", "confirming":
		return "state_change new=" + word
	}
	return ""
}
