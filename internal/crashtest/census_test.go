//go:build unix

package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// letter is what the tests know of a message file: what stands in format.md,
// not what the project's packages make of it.
type letter struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	From        string          `json:"from"`
	To          []string        `json:"to"`
	Body        string          `json:"body"`
	RequiresAck bool            `json:"requires_ack"`
	InReplyTo   string          `json:"in_reply_to"`
	Payload     json.RawMessage `json:"payload"`
	Attachments []struct {
		SHA256 string `json:"sha256"`
	} `json:"attachments"`
}

// found is a message in a mailbox.
type found struct {
	letter
	agent string
	place string // new, cur, done, withdrawn, archive
	path  string // below the team
	token token  // of its body, or of what is attached
	whole bool
	file  bool // the text is attached: reading does not show it
}

// other is a file that is no message: dropped and not taken in yet, claimed,
// set aside, or kept as the original of a drop.
type other struct {
	agent, kind, path string // kind: drop, claim, bad, original
	token             token
}

// census is all that lies in a team.
type census struct {
	messages []found
	others   []other
	events   map[string][]string // lines, by agent, also of retired ones
	logs     eventLogs
	torn     []string // what is under a message's name and is none
}

var idName = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json$`)

// take counts what is in a team's directory. Nobody may be at work there.
func take(t testing.TB, team string) *census {
	t.Helper()
	c := &census{events: map[string][]string{}, logs: eventLogs{}}
	err := filepath.WalkDir(team, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(team, path)
		return c.file(team, rel)
	})
	if err != nil {
		t.Fatal("census: ", err)
	}
	return c
}

// file sorts one file in by its path.
func (c *census) file(team, rel string) error {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	name := parts[len(parts)-1]
	agent, archived := parts[0], false
	switch {
	case strings.HasPrefix(rel, ".archive/retired/") && len(parts) > 4:
		agent, _, _ = strings.Cut(parts[2], ".")
		parts = parts[3:]
	case strings.HasPrefix(rel, ".archive/") && len(parts) > 3:
		agent, archived = parts[1], true
		parts = parts[2:]
	case strings.HasPrefix(rel, "."), len(parts) < 2: // team.toml
		return nil
	default:
		parts = parts[1:]
	}
	data, err := os.ReadFile(filepath.Join(team, rel))
	if err != nil {
		return err
	}
	m := headLine.FindSubmatch(data)
	keep := func(kind string) error {
		o := other{agent: agent, kind: kind, path: rel}
		if m != nil {
			o.token = token(m[1])
		}
		c.others = append(c.others, o)
		return nil
	}
	dir := strings.Join(parts[:len(parts)-1], "/")
	switch {
	case archived && parts[0] == "drops":
		return keep("original")
	case archived && parts[0] == "done":
		return c.message(team, agent, "archive", rel, data)
	case dir == "events" && strings.HasSuffix(name, ".ndjson"):
		lines := bytes.SplitAfter(data, []byte{'\n'})
		for i, line := range lines {
			if len(line) > 0 {
				if !json.Valid(line) {
					// The last may be: it is cut off by the next who appends.
					if i < len(lines)-1 && len(lines[i+1]) > 0 {
						c.torn = append(c.torn, rel+": a line of the events: "+clip(string(line)))
					}
					continue
				}
				c.events[agent] = append(c.events[agent], string(line))
				c.logged(agent, rel, line)
			}
		}
	case dir == "inbox/new" && idName.MatchString(name), dir == "inbox/cur", strings.HasPrefix(dir, "inbox/done/"), dir == "inbox/withdrawn":
		return c.message(team, agent, parts[1], rel, data)
	case dir == "inbox/tmp" && strings.HasSuffix(name, ".drop"):
		return keep("claim")
	case dir == "inbox/bad" && !strings.HasSuffix(name, ".reason"):
		return keep("bad")
	case dir == "inbox", dir == "inbox/new":
		if len(data) > 0 && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".part") {
			return keep("drop")
		}
	}
	return nil
}

func (c *census) message(team, agent, place, rel string, data []byte) error {
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
		// A dropped file may have more around its text; what is attached may be
		// the text.
		for _, a := range f.Attachments {
			content, err := os.ReadFile(filepath.Join(team, ".files", a.SHA256))
			if errors.Is(err, fs.ErrNotExist) {
				c.torn = append(c.torn, rel+": what is attached is not there: "+a.SHA256)
				continue
			}
			if err != nil {
				return err
			}
			f.token, f.whole = tokenOf(strings.TrimRight(string(content), "\x00"))
			f.file = true
		}
	}
	c.messages = append(c.messages, f)
	return nil
}

// pending is what is dropped and not taken in, or not to its end.
func (c *census) pending() (out []other) {
	for _, o := range c.others {
		if o.kind == "drop" || o.kind == "claim" {
			out = append(out, o)
		}
	}
	return out
}
