//go:build linux

package machines

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type member struct{ host, agent string }

// as is the member's address as a host writes it that looks at it.
func (m member) as(host string) string {
	if m.host == host {
		return m.agent + "@main"
	}
	return m.agent + "@main." + m.host
}

// A message is what was sent. Its text and its files are kept by their hashes.
type message struct {
	id    string // once it is sent
	once  string // the name under which it is sent
	from  member
	to    []member
	text  string
	files map[string]string // by name
	acks  map[member]bool   // who acknowledged it
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// mail is a message as it lies in a mailbox.
type mail struct {
	ID, Type, From, Body string
	InReplyTo            string `json:"in_reply_to"`
	To                   []string
	Attachments          []struct {
		Name, SHA256 string
		Size         int64
	}
}

// A verdict is what is wrong, by its kind: lost, doubled, changed and the rest.
type verdict map[string][]string

func (v verdict) add(kind, format string, args ...any) {
	v[kind] = append(v[kind], fmt.Sprintf(format, args...))
}

// String is three numbers, and the first few of what is wrong.
func (v verdict) String() string {
	s := fmt.Sprintf("lost %d, doubled %d, changed %d", len(v["lost"]), len(v["doubled"]), len(v["changed"]))
	for _, kind := range slices.Sorted(maps.Keys(v)) {
		for _, w := range v[kind][:min(5, len(v[kind]))] {
			s += fmt.Sprintf("\n  %s: %s", kind, w)
		}
		if more := len(v[kind]) - 5; more > 0 {
			s += fmt.Sprintf("\n  %s: %d more", kind, more)
		}
	}
	return s
}

// judge compares what was sent with what lies in the mailboxes.
func judge(hosts []*host, sent []*message) verdict {
	v, mails, stages := verdict{}, map[member]map[string][]mail{}, map[member]map[string]int{}
	for _, h := range hosts {
		for _, agent := range h.members {
			who := member{h.name, agent}
			mails[who], stages[who] = h.mails(v, agent), h.stages(agent)
			for stage, n := range stages[who] {
				if n > 1 {
					v.add("doubled", "the stage %s: %d times", stage, n)
				}
			}
		}
		for _, path := range h.outbox() {
			v.add("left", "%s", path)
		}
		bad, _ := filepath.Glob(filepath.Join(h.team(), ".bridge/bad/*.reason"))
		for _, path := range bad {
			reason, _ := os.ReadFile(path)
			v.add("bad", "%s: %s", path, reason)
		}
	}
	for _, m := range sent {
		for _, to := range m.to {
			all := mails[to][m.id]
			delete(mails[to], m.id)
			v.once(fmt.Sprintf("%s from %s to %s", m.id, m.from.as(""), to.as("")), len(all))
			for _, got := range all {
				if wrong := hosts[index(hosts, to.host)].differs(m, got); wrong != "" {
					v.add("changed", "%s from %s to %s: %s", m.id, m.from.as(""), to.as(""), wrong)
				}
			}
		}
		for _, to := range m.to {
			if to.host != m.from.host && stages[m.from][to.as("")+" "+m.id+" stored"] == 0 {
				v.add("untold", "%s of %s is not told that it is stored with %s", m.from.as(""), m.id, to.as(""))
			}
		}
		for by := range m.acks {
			n := 0
			for id, all := range mails[m.from] {
				if all[0].Type == "ack" && all[0].InReplyTo == m.id && all[0].From == by.as(m.from.host) {
					n += len(all)
					delete(mails[m.from], id)
				}
			}
			v.once(fmt.Sprintf("ack of %s by %s to %s", m.id, by.as(""), m.from.as("")), n)
		}
	}
	for who, all := range mails {
		for id, m := range all {
			v.add("unknown", "%s %s from %s at %s: %s", m[0].Type, id, m[0].From, who.as(""), clip(m[0].Body))
		}
	}
	return v
}

func (v verdict) once(what string, n int) {
	if n == 0 {
		v.add("lost", "%s", what)
	} else if n > 1 {
		v.add("doubled", "%s: %d times", what, n)
	}
}

func index(hosts []*host, name string) int {
	return slices.IndexFunc(hosts, func(h *host) bool { return h.name == name })
}

// mails are all of a mailbox, by their ids.
func (h *host) mails(v verdict, agent string) map[string][]mail {
	all := map[string][]mail{}
	for _, dir := range []string{agent + "/inbox", ".archive/" + agent} {
		filepath.WalkDir(filepath.Join(h.team(), dir), func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				v.add("unreadable", "%v", err)
			case strings.Contains(path, "/inbox/bad/"):
				v.add("bad", "%s", path)
			case filepath.Ext(path) == ".json":
				var m mail
				data, err := os.ReadFile(path)
				if errors.Is(err, fs.ErrNotExist) { // moved meanwhile
					break
				}
				if err == nil {
					err = json.Unmarshal(data, &m)
				}
				if err != nil || m.ID+".json" != e.Name() {
					v.add("unreadable", "%s: %v", path, err)
				}
				all[m.ID] = append(all[m.ID], m)
			}
			return nil
		})
	}
	return all
}

// stages are what a member's log tells of the way of messages on other hosts, and how often.
func (h *host) stages(agent string) map[string]int {
	all := map[string]int{}
	logs, _ := filepath.Glob(filepath.Join(h.team(), agent, "events/*.ndjson"))
	for _, path := range logs {
		data, _ := os.ReadFile(path)
		for line := range bytes.Lines(data) {
			var e struct{ Kind, ID, To, Stage string }
			if json.Unmarshal(line, &e) == nil && e.Kind == "delivery_stage" {
				all[e.To+" "+e.ID+" "+e.Stage]++
			}
		}
	}
	return all
}

// differs says in what a message that came differs from the one that was sent.
func (h *host) differs(m *message, got mail) string {
	to := make([]string, len(m.to))
	for i, r := range m.to {
		to[i] = r.as(h.name)
	}
	slices.Sort(got.To)
	slices.Sort(to)
	switch {
	case got.From != m.from.as(h.name):
		return fmt.Sprintf("from %s, not %s", got.From, m.from.as(h.name))
	case !slices.Equal(got.To, to):
		return fmt.Sprintf("to %s, not %s", got.To, to)
	case hash([]byte(got.Body)) != m.text:
		return fmt.Sprintf("the text: %s", clip(got.Body))
	case len(got.Attachments) != len(m.files):
		return fmt.Sprintf("%d attachments of %d", len(got.Attachments), len(m.files))
	}
	for _, a := range got.Attachments {
		data, err := os.ReadFile(filepath.Join(h.team(), ".files", a.SHA256))
		if err != nil || int64(len(data)) != a.Size || hash(data) != m.files[a.Name] {
			return fmt.Sprintf("attachment %s: %d bytes of %d, %v", a.Name, len(data), a.Size, err)
		}
	}
	return ""
}

// What is lost, doubled or changed is found.
func TestJudge(t *testing.T) {
	dir := t.TempDir()
	hosts := []*host{{name: "laptop", members: []string{"alice"}, dir: dir + "/laptop"}, {name: "build", members: []string{"bob"}, dir: dir + "/build"}}
	bob := filepath.Join(hosts[1].team(), "bob/inbox")
	write := func(path, format string, args ...any) {
		t.Helper()
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var sent []*message
	for _, id := range []string{"right", "lost", "twice", "text", "file", "ack"} {
		m := &message{id: id, from: member{"laptop", "alice"}, to: []member{{"build", "bob"}}, text: hash([]byte("hi")), files: map[string]string{"f": hash([]byte(id))}}
		sent = append(sent, m)
		mail := fmt.Sprintf(`{"id":%q,"from":"alice@main.laptop","to":["bob@main"],"body":"hi","attachments":[{"name":"f","sha256":%q,"size":%d}]}`, id, m.files["f"], len(id))
		write(filepath.Join(hosts[1].team(), ".files", m.files["f"]), "%s", id)
		switch id {
		case "lost":
			continue
		case "twice":
			write(filepath.Join(bob, "done/2026-01-01/twice.json"), "%s", mail)
		case "text":
			mail = strings.Replace(mail, "hi", "ho", 1)
		case "file":
			write(filepath.Join(hosts[1].team(), ".files", m.files["f"]), "else")
		case "ack":
			m.acks = map[member]bool{{"build", "bob"}: true}
		}
		write(filepath.Join(bob, "new", id+".json"), "%s", mail)
	}
	write(filepath.Join(hosts[0].team(), ".bridge/build/new/x.json"), "")
	write(filepath.Join(hosts[0].team(), "alice/inbox/new/y.json"), `{"id":"y","from":"bob@main.build"}`)
	stored := `{"kind":"delivery_stage","id":%q,"to":"bob@main.build","stage":"stored"}` + "\n"
	write(filepath.Join(hosts[0].team(), "alice/events/1.ndjson"), stored+stored+stored, "right", "text", "text")
	v := judge(hosts, sent)
	for kind, want := range map[string]int{"lost": 2, "doubled": 2, "changed": 2, "left": 1, "unknown": 1, "untold": 4} {
		if len(v[kind]) != want {
			t.Errorf("%s: %d, not %d", kind, len(v[kind]), want)
		}
	}
	if t.Failed() {
		t.Log(v)
	}
}
