//go:build unix

package crashtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// letter is what the tests know of a message file: what stands in format.md, not what the
// project's packages make of it.
type letter struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	From        string `json:"from"`
	Body        string `json:"body"`
	RequiresAck bool   `json:"requires_ack"`
	InReplyTo   string `json:"in_reply_to"`
	Attachments []struct {
		SHA256 string `json:"sha256"`
	} `json:"attachments"`
}

func (m *letter) sender() string {
	name, _, _ := strings.Cut(m.From, "@")
	return name
}

// found is a message in a mailbox.
type found struct {
	letter
	agent    string
	place    string // new, cur, done, withdrawn, archive
	path     string // below the team
	token    token  // of its body, or of what is attached
	whole    bool
	attached bool // reading does not show the text
}

// other is a file that is no message: dropped and not taken in yet, claimed, or set aside as bad.
type other struct {
	agent, kind, path string // kind: drop, claim, bad
	token             token
}

// logLine is an event as it lies in an agent's log.
type logLine struct {
	Seq      uint64 `json:"seq"`
	Source   string `json:"source"`
	Kind     string `json:"kind"`
	Session  string `json:"session"`
	TurnID   string `json:"turn_id"`
	ToolCall string `json:"tool_call_id"`
	Status   string `json:"status"`
	Content  string `json:"content"`
	EventID  string `json:"event_id"`
	Wire     struct {
		Content string `json:"content"`
		Text    string `json:"text"`
	} `json:"wire"`

	path string // of the segment, below the team
	line string
}

// text is what a test put into an event.
func (e *logLine) text() string { return cmp.Or(e.Wire.Content, e.Wire.Text, e.Content) }

// hookEvent is what a line of the log says of a hook's call.
func (e *logLine) hookEvent(agent string) hookEvent {
	h := hookEvent{agent: agent, kind: e.Kind, session: e.Session}
	switch e.Kind {
	case "turn_started", "turn_idle":
		h.about = e.TurnID
	case "turn_completed":
		h.about = strings.TrimSpace(e.TurnID + " " + e.Status)
	case "tool_call_start", "tool_call_end":
		h.about = e.ToolCall
	}
	return h
}

// census is all that lies in a team.
type census struct {
	team     string
	messages []found
	others   []other
	logs     map[string][]logLine // by agent, each from its first event on; a retired one's by name.time
	torn     []string             // what is under a message's name and is none
}

var idName = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json$`)

// census counts what is in the team's directory. Nobody may be at work there.
func (w *world) census() *census {
	w.t.Helper()
	c := &census{team: w.team(), logs: map[string][]logLine{}}
	err := filepath.WalkDir(c.team, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return c.add(path)
	})
	if err != nil {
		w.t.Fatal("census: ", err)
	}
	return c
}

// add sorts one file in by its path. The archive comes first.
func (c *census) add(path string) error {
	rel, err := filepath.Rel(c.team, path)
	if err != nil {
		return err
	}
	parts := strings.Split(rel, "/")
	agent, log, archived := parts[0], parts[0], false
	switch {
	case strings.HasPrefix(rel, ".archive/retired/") && len(parts) > 4:
		log = parts[2]
		agent, _, _ = strings.Cut(log, ".")
		parts = parts[3:]
	case strings.HasPrefix(rel, ".archive/") && len(parts) > 3:
		agent, log, archived = parts[1], parts[1], true
		parts = parts[2:]
	case strings.HasPrefix(rel, "."), len(parts) < 2: // team.toml
		return nil
	default:
		parts = parts[1:]
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	keep := func(kind string) {
		o := other{agent: agent, kind: kind, path: rel}
		if m := headLine.FindSubmatch(data); m != nil {
			o.token = token(m[1])
		}
		c.others = append(c.others, o)
	}
	name, dir := parts[len(parts)-1], strings.Join(parts[:len(parts)-1], "/")
	switch {
	case archived && parts[0] == "done":
		return c.addMessage(agent, "archive", rel, data)
	case dir == "events" && strings.HasSuffix(name, ".ndjson"):
		c.addLog(log, rel, data)
	case dir == "inbox/new" && idName.MatchString(name), dir == "inbox/cur", strings.HasPrefix(dir, "inbox/done/"), dir == "inbox/withdrawn":
		return c.addMessage(agent, parts[1], rel, data)
	case len(parts) == 4 && strings.HasPrefix(dir, "inbox/held/"): // unread, and somebody has it, or had it
		return c.addMessage(agent, "new", rel, data)
	case dir == "inbox/tmp" && strings.HasSuffix(name, ".drop"):
		keep("claim")
	case dir == "inbox/bad" && !strings.HasSuffix(name, ".reason"):
		keep("bad")
	case dir == "inbox", dir == "inbox/new":
		if len(data) > 0 && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".part") {
			keep("drop")
		}
	}
	return nil
}

func (c *census) addLog(log, rel string, data []byte) {
	for line := range bytes.Lines(data) {
		e := logLine{path: rel, line: string(line)}
		if json.Unmarshal(line, &e) == nil { // else it was torn, and whoever appended next has ended it
			c.logs[log] = append(c.logs[log], e)
		}
	}
}

func (c *census) addMessage(agent, place, rel string, data []byte) error {
	f := found{agent: agent, place: place, path: rel}
	name := filepath.Base(rel)
	if err := json.Unmarshal(data, &f.letter); err != nil {
		c.torn = append(c.torn, rel+": "+err.Error())
		return nil
	}
	if f.ID+".json" != name || !idName.MatchString(name) {
		c.torn = append(c.torn, rel+": the id inside is "+f.ID)
	}
	f.token, f.whole = tokenOf(f.Body)
	if f.token == "" {
		// What is attached may be the text; a dropped file may have more around it.
		for _, a := range f.Attachments {
			content, err := os.ReadFile(filepath.Join(c.team, ".files", a.SHA256))
			if errors.Is(err, fs.ErrNotExist) {
				c.torn = append(c.torn, rel+": what is attached is not there: "+a.SHA256)
				continue
			}
			if err != nil {
				return err
			}
			f.token, f.whole = tokenOf(strings.TrimRight(string(content), "\x00"))
			f.attached = true
		}
	}
	c.messages = append(c.messages, f)
	return nil
}

// A place is where a text lies.
type place struct {
	kind  string // a message's place; drop, claim, bad; log
	path  string
	whole bool
	id    string
	seq   uint64
}

// places are where all texts lie, by their mailbox or log.
func (c *census) places() map[key][]place {
	all := map[key][]place{}
	for _, f := range c.messages {
		k := key{f.agent, f.token}
		all[k] = append(all[k], place{f.place, f.path, f.whole, f.ID, 0})
	}
	for log, lines := range c.logs {
		agent, _, _ := strings.Cut(log, ".")
		for _, e := range lines {
			if m := headLine.FindStringSubmatch(e.line); m != nil {
				_, whole := tokenOf(e.text())
				k := key{agent, token(m[1])}
				all[k] = append(all[k], place{"log", e.path, whole, "", e.Seq})
			}
		}
	}
	for _, o := range c.others {
		k := key{o.agent, o.token}
		if o.kind == "claim" && len(all[k]) > 0 { // published, and settled by whoever comes next
			continue
		}
		all[k] = append(all[k], place{kind: o.kind, path: o.path})
	}
	delete(all, key{})
	return all
}

// pending is what is dropped and not taken in, or not to its end.
func (c *census) pending() (paths []string) {
	for _, o := range c.others {
		if o.kind == "drop" || o.kind == "claim" {
			paths = append(paths, o.path)
		}
	}
	return paths
}

// has says whether an agent has a text.
func (c *census) has(k key) bool {
	return slices.ContainsFunc(c.messages, func(f found) bool { return f.agent == k.agent && f.token == k.token })
}

// isIn says whether messages are where they should be.
func (c *census) isIn(agent, place string, ids ...string) error {
	for _, id := range ids {
		at := slices.IndexFunc(c.messages, func(f found) bool { return f.agent == agent && f.ID == id })
		if at < 0 {
			return fmt.Errorf("%s is nowhere", id)
		}
		if f := c.messages[at]; f.place != place {
			return fmt.Errorf("%s is in %s, not in %s", id, f.place, place)
		}
	}
	return nil
}

// segments are an agent's segments that are not in the archive, oldest first.
func (w *world) segments(agent string) (paths []string) {
	paths, _ = filepath.Glob(filepath.Join(w.team(), agent, "events", "*.ndjson"))
	return paths
}

// archived is up to which event those of an agent are in the archive.
func (w *world) archived(agent string) (seq uint64) {
	if segs := w.segments(agent); len(segs) > 0 {
		fmt.Sscanf(filepath.Base(segs[0]), "%d", &seq)
	}
	return max(seq, 1) - 1
}
