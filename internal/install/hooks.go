package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/confedit"
)

// hooks are those of a tool that keeps them as Claude Code does, three levels
// deep: {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}.
// Without a matcher a group is for everything.
type hooks struct {
	tool    string
	name    string // what the tool shows while a hook runs; "": the command
	command string
	events  []event
}

// event is a moment that a tool has hooks for. timeout is in the tool's own
// unit.
type event struct {
	name    string
	timeout int
}

// handler is one command of one event, where it stands.
type handler struct {
	event        string
	group, index int
	groups, list *confedit.Value // the event's groups; the group's commands
	entry        *confedit.Value
	command      *confedit.Value
	whose        whose
}

// handlers are all commands of a document's hooks that call atm.
func (h hooks) handlers(doc *confedit.JSON) []handler {
	var out []handler
	events := doc.Root.Get("hooks")
	if events == nil {
		return nil
	}
	for _, m := range events.Members {
		for g, group := range m.Value.Elems {
			list := group.Get("hooks")
			if list == nil {
				continue
			}
			for i, e := range list.Elems {
				c := e.Get("command")
				if c == nil || c.Kind != confedit.String {
					continue
				}
				var args []string
				if a := e.Get("args"); a != nil {
					for _, w := range a.Elems {
						args = append(args, w.Text)
					}
				}
				if w := judge(c.Text, args, h.tool); w != foreign {
					out = append(out, handler{event: m.Key, group: g, index: i, groups: m.Value, list: list, entry: e, command: c, whose: w})
				}
			}
		}
	}
	return out
}

// current reports whether a command stands as it would be written now.
func (h hooks) current(x handler, timeout int, doc []byte) bool {
	t := x.entry.Get("timeout")
	typ := x.entry.Get("type")
	name := ""
	if n := x.entry.Get("name"); n != nil {
		name = n.Text
	}
	return name == h.name && x.command.Text == h.command && x.entry.Get("args") == nil && typ != nil && typ.Text == "command" &&
		t != nil && string(doc[t.Start:t.End]) == fmt.Sprint(timeout)
}

// fill puts the hooks into a sheet: one command for each event.
func (h hooks) fill(s *sheet) error {
	var added, updated []string
	for _, e := range h.events {
		_, err := h.groupsOf(s, e.name)
		if err != nil {
			return err
		}
		found := h.of(s, e.name)
		switch {
		case slices.ContainsFunc(found, func(x handler) bool { return x.whose == adjusted }):
		case len(found) == 0:
			doc, groups, err := s.container(confedit.Array, "hooks", e.name)
			if err != nil {
				return err
			}
			group := confedit.Map{{Key: "hooks", Value: confedit.List{h.entry(e)}}}
			s.text.Apply(doc.Append(groups, confedit.Flat{Value: group}))
			added = append(added, e.name)
		default:
			if h.refresh(s, found[0], e) {
				updated = append(updated, e.name)
			}
		}
		for h.dropExtra(s, e.name) {
			updated = union(updated, []string{e.name})
		}
	}
	// What an older version asked for and this one does not.
	for _, x := range h.handlers(s.root()) {
		if x.whose == mine && !slices.ContainsFunc(h.events, func(e event) bool { return e.name == x.event }) {
			updated = union(updated, []string{x.event})
		}
	}
	for _, name := range updated {
		if !slices.ContainsFunc(h.events, func(e event) bool { return e.name == name }) {
			h.drop(s, func(x handler) bool { return x.event == name })
		}
	}
	if len(added) > 0 {
		s.say("hooks for %s: %s", events(added), h.command)
	}
	if len(updated) > 0 {
		s.say("hooks brought up to date for %s: %s", events(updated), h.command)
	}
	return nil
}

// events names a few events, and counts many.
func events(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d events", len(names))
	}
	return strings.Join(names, ", ")
}

func (h hooks) entry(e event) confedit.Map {
	m := confedit.Map{{Key: "type", Value: "command"}, {Key: "command", Value: h.command}, {Key: "timeout", Value: e.timeout}}
	if h.name != "" {
		m = append(confedit.Map{{Key: "name", Value: h.name}}, m...)
	}
	return m
}

// groupsOf makes sure that what is to hold an event's hooks can.
func (h hooks) groupsOf(s *sheet, name string) (*confedit.Value, error) {
	for n, want := range []confedit.Kind{confedit.Object, confedit.Array} {
		keys := []string{"hooks", name}[:n+1]
		if _, v := s.look(keys...); v == nil {
			return nil, nil
		} else if v.Kind != want {
			return nil, wrongKind(keys, v.Kind, want)
		} else if want == confedit.Array {
			return v, nil
		}
	}
	return nil, nil
}

// of are the commands of one event that call atm.
func (h hooks) of(s *sheet, name string) []handler {
	return slices.DeleteFunc(h.handlers(s.root()), func(x handler) bool { return x.event != name })
}

// refresh brings a command up to date, and leaves the fields alone that
// somebody added.
func (h hooks) refresh(s *sheet, x handler, e event) (changed bool) {
	if h.current(x, e.timeout, s.text.Bytes()) {
		return false
	}
	for _, m := range h.entry(e) {
		x = h.of(s, e.name)[0]
		s.text.Apply(s.root().Set(x.entry, m.Key, m.Value))
	}
	x = h.of(s, e.name)[0]
	if i := slices.IndexFunc(x.entry.Members, func(m confedit.Member) bool { return m.Key == "args" }); i >= 0 {
		s.text.Apply(s.root().Remove(x.entry, i))
	}
	return true
}

// dropExtra takes one command out that stands in an event a second time.
func (h hooks) dropExtra(s *sheet, name string) bool {
	found := h.of(s, name)
	if len(found) < 2 {
		return false
	}
	i := slices.IndexFunc(found[1:], func(x handler) bool { return x.whose == mine })
	if i < 0 {
		if found[0].whose != mine {
			return false
		}
		i = -1
	}
	h.dropOne(s, found[i+1])
	return true
}

// clear takes all commands of ours out of a sheet.
func (h hooks) clear(s *sheet) {
	if n := h.drop(s, func(handler) bool { return true }); n > 0 {
		s.say("hooks taken out: %d", n)
	}
}

func (h hooks) drop(s *sheet, which func(handler) bool) (n int) {
	for !confedit.Blank(s.text.Bytes()) {
		found := h.handlers(s.root())
		i := slices.IndexFunc(found, func(x handler) bool { return x.whose == mine && which(x) })
		if i < 0 {
			break
		}
		h.dropOne(s, found[i])
		n++
	}
	return n
}

// dropOne takes one command out, its group if that held nothing else, and the
// containers that are empty then.
func (h hooks) dropOne(s *sheet, x handler) {
	group := x.groups.Elems[x.group]
	alone := len(x.list.Elems) == 1 && !slices.ContainsFunc(group.Members, func(m confedit.Member) bool { return m.Key != "hooks" && m.Key != "matcher" })
	if alone {
		s.text.Apply(s.root().Remove(x.groups, x.group))
		s.prune("hooks", x.event)
	} else {
		s.text.Apply(s.root().Remove(x.list, x.index))
	}
}

// ours reports whether an install went over the sheet before.
func (h hooks) ours(s *sheet) bool {
	return !confedit.Blank(s.text.Bytes()) && slices.ContainsFunc(h.handlers(s.root()), func(x handler) bool { return x.whose == mine })
}

// commands are those of ours in a file of hooks, as words. What cannot be read
// or understood has none.
func (h hooks) commands(path string, f format) [][]string {
	data, _, err := read(path)
	if err != nil {
		return nil
	}
	doc, err := confedit.ParseJSON(data, f.dialect())
	if err != nil {
		return nil
	}
	var out [][]string
	for _, x := range h.handlers(doc) {
		if words, ok := shellWords(x.command.Text); ok && x.whose == mine {
			out = append(out, words)
		}
	}
	return out
}
