package claudeteam

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Files that Claude Code 2.1.197 wrote. The last four entries are what other versions and programs may write.
var (
	//go:embed testdata/config.json
	recorded string
	//go:embed testdata/bob.json
	inboxOfBob string

	entries, _       = decodeInbox([]byte(inboxOfBob))
	fromLead, isIdle = string(entries[0].raw), string(entries[1].raw)
	foreign          = string(written(encodeInbox(entries[3:])))
)

func written(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A scene is one of our teams and one of Claude's.
type scene struct {
	t        *testing.T
	team     *teamdir.Team // as the test looks at it
	sync     *Sync
	reported []string
	isFull   bool // writes in Claude's directory fail
}

func newScene(t *testing.T, ours ...wire.Name) *scene {
	top := testtree.Make(t, "file claude/teams/session-7f770861/config.json "+recorded)
	sc := &scene{t: t, team: openTeam(t, filepath.Join(top, "root"), ours...)}
	sc.sync = newSync(t, sc.team, filepath.Join(top, "claude/teams/session-7f770861"), 50*time.Millisecond, func(tr Transfer) { sc.reported = append(sc.reported, tr.String()) })
	sc.sync.fault = func(op, name string) error {
		if sc.isFull && op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}
	return sc
}

func newSync(t testing.TB, with *teamdir.Team, dir string, wait time.Duration, report func(Transfer)) *Sync {
	root, err := teamdir.Open(with.Root().Path, notices.Tell)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	root.LockTimeout = wait
	own, err := root.Team(with.Name)
	must(t, err)
	team := (*teams.Team)(own.Handle(nil))
	return &Sync{Team: team, Dir: dir, LockWait: wait, Report: report}
}

func openTeam(t testing.TB, path string, members ...wire.Name) *teamdir.Team {
	_, err := rootdir.Make(path)
	must(t, err)
	root, err := teamdir.Open(path, notices.Tell)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	team, err := root.CreateTeam("main")
	must(t, err)
	for _, m := range members {
		if err := team.Store.Create(context.Background(), m); !errors.Is(err, mailbox.ErrExists) {
			must(t, err)
		}
	}
	return team
}

func (sc *scene) file(name string) string {
	data, err := os.ReadFile(filepath.Join(sc.sync.Dir, name))
	must(sc.t, err)
	return string(data)
}

func (sc *scene) write(name, text string) {
	must(sc.t, os.MkdirAll(filepath.Join(sc.sync.Dir, inboxDir), 0o755))
	must(sc.t, os.WriteFile(filepath.Join(sc.sync.Dir, name), []byte(text), 0o644))
}

// pass makes a pass and checks that its error contains want; "" wants no error.
func (sc *scene) pass(want string) {
	sc.t.Helper()
	err := sc.sync.Pass(context.Background())
	if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
		sc.t.Errorf("error %v, want %q", err, want)
	}
}

func (sc *scene) unread(name wire.Name) (out []*wire.Message) {
	sc.t.Helper()
	batch, err := inbox.Peek(context.Background(), sc.team.Box(name), inbox.ReadOptions{})
	must(sc.t, err)
	for _, it := range batch.Items {
		out = append(out, it.Message)
	}
	return out
}

func send(t testing.TB, team *teamdir.Team, m wire.Message, from, to wire.Name) *wire.Message {
	t.Helper()
	if m.ID == "" {
		m.ID = wire.NewID()
	}
	m.From, m.To = wire.Address{Agent: from, Team: "main"}, []wire.Address{{Agent: to, Team: "main"}}
	if m.SentAt.IsZero() {
		m.SentAt = time.Now().UTC()
	}
	p := &maildir.Post{Message: &m, To: []*maildir.Box{team.Box(to)}}
	maildir.Deliver(context.Background(), p)
	must(t, p.Outcomes[0].Err)
	return &m
}

func (sc *scene) entries(name string) (out []entry) {
	sc.t.Helper()
	out, err := decodeInbox([]byte(sc.file(inboxDir + "/" + name + ".json")))
	must(sc.t, err)
	return out
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestIngestsRecordedEntries(t *testing.T) {
	sc := newScene(t, "bob", "user")
	sc.write("inboxes/bob.json", inboxOfBob)
	sc.pass("left entry 4 there: it is not a message with from, text and timestamp\nleft entry 5 there: ")
	equal(t, "inbox", sc.file("inboxes/bob.json"), foreign)
	equal(t, "reported", sc.reported, []string{"team-lead → bob: hi", "rev_1 is idle", `team-lead → bob: {"type":"shutdown_request","requestId":"shutdown-1795287764434@bob","from":"team-lead","timestamp":"2026-11-21T19:04:12.349Z"}`})
	got := sc.unread("bob")
	equal(t, "types", []string{got[0].Type, got[1].Type}, []string{"", "claude_shutdown_request"})
	equal(t, "body", got[0].Body, "Hello bob, <from> lead. \ufffd")
	equal(t, "from", got[0].From.String(), "team-lead@main")
	equal(t, "meta", string(got[0].Meta), `{"claude":{"from":"team-lead","summary":"hi","timestamp":"2026-11-21T19:03:51.875Z","msgV":1,"msg_id":"d8fa2ef2-dec5-4672-86a4-095a3b5fde88","type":"message","team":"session-7f770861"}}`)
	equal(t, "sent at", got[0].SentAt, time.Date(2026, 11, 21, 19, 3, 51, 875e6, time.UTC))
	state, err := presence.One(t.Context(), sc.team, "rev_1")
	must(t, err)
	equal(t, "state of rev_1", string(state.State)+" "+string(state.LastTurn.Status), "idle interrupted")

	sc.write("inboxes/bob.json", "["+strings.Replace(isIdle, "interrupted", "available", 1)+"]")
	sc.pass("")
	state, err = presence.One(t.Context(), sc.team, "rev_1")
	must(t, err)
	equal(t, "last turn after a second notification", string(state.LastTurn.Status), "interrupted")

	// A sync that was killed between storing and removing an entry stores it once.
	sc.write("inboxes/bob.json", "[\n"+fromLead+","+isIdle+"\n]")
	sc.reported = nil
	sc.pass("")
	equal(t, "reported after the repeat", sc.reported, []string(nil))
	equal(t, "unread", len(sc.unread("bob")), 2)
	equal(t, "inbox", sc.file("inboxes/bob.json"), "[]")
	equal(t, "the inbox of a reserved name", sc.file("inboxes/user-atm.json"), "[]")
}

// A message of somebody else under the id that an entry gets does not replace the entry.
func TestTakenID(t *testing.T) {
	sc := newScene(t, "bob", "carol")
	list, err := decodeInbox([]byte("[" + fromLead + "]"))
	must(t, err)
	send(t, sc.team, wire.Message{ID: sc.sync.idOf(&list[0], sc.team.Box("bob").Address()), Body: "newsletter"}, "carol", "bob")
	for range 2 {
		sc.write("inboxes/bob.json", "["+fromLead+"]")
		sc.pass("")
	}
	equal(t, "unread", len(sc.unread("bob")), 2)
}

// Names that are alike in ours are different members, and stay so; two that have one file there get nothing.
func TestAlikeNames(t *testing.T) {
	sc := newScene(t, "bob")
	list := func(names ...string) {
		text := `{"members":[`
		for _, name := range names {
			text += fmt.Sprintf(`{"name":%q,"joinedAt":1695287764434},`, name)
		}
		sc.write(configFile, strings.TrimSuffix(text, ",")+"]}")
	}
	from := func(name string) string { return strings.Replace(fromLead, `"team-lead"`, fmt.Sprintf("%q", name), 1) }
	list("Rev", "rev", "审查员", "Ревьюер")
	sc.write("inboxes/bob.json", "["+strings.Join([]string{from("Rev"), from("rev"), from("审查员"), from("Ревьюер")}, ",")+"]")
	sc.pass("")
	equal(t, "reported", sc.reported, []string{"rev → bob: hi", "rev-2 → bob: hi", "claude → bob: hi", "claude-2 → bob: hi"})
	list("Ревьюер", "rev", "测试员", "审查员")
	for _, name := range []wire.Name{"rev-2", "claude", "claude-2"} {
		send(t, sc.team, wire.Message{Body: "for " + string(name)}, "bob", name)
	}
	sc.pass("---.json: it is the inbox of 审查员 and of 测试员, so their mail waits here")
	equal(t, "unread", len(sc.unread("claude")), 1)
	for name, want := range map[string]string{"rev": "for rev-2", "-------": "for claude-2"} {
		if got := sc.entries(name); len(got) != 1 || !strings.Contains(got[0].Text, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	list("审查员")
	sc.pass("")
	equal(t, "unread", len(sc.unread("claude")), 0)
}

// Every team of Claude's has a team-lead: two of them are two members, and each gets the answer to what it asked.
func TestTwoTeams(t *testing.T) {
	sc := newScene(t, "bob")
	other := newScene(t)
	other.team = sc.team
	other.sync = newSync(t, sc.team, filepath.Join(filepath.Dir(sc.sync.Dir), "t2"), 50*time.Millisecond, func(tr Transfer) { sc.reported = append(sc.reported, tr.String()) })
	other.write(configFile, recorded)
	for range 2 {
		for _, one := range []*scene{sc, other} {
			one.write("inboxes/bob.json", "["+fromLead+"]")
			one.pass("")
		}
	}
	equal(t, "reported", sc.reported, []string{"team-lead → bob: hi", "team-lead-t2 → bob: hi"})
	for _, m := range sc.unread("bob") {
		send(t, sc.team, wire.Message{Body: "for " + string(m.From.Agent), InReplyTo: m.ID}, "bob", m.From.Agent)
	}
	for _, one := range []*scene{other, sc} { // in any order
		one.pass("")
	}
	for want, one := range map[string]*scene{"for team-lead\n": sc, "for team-lead-t2\n": other} {
		if got := one.entries("team-lead"); len(got) != 1 || !strings.Contains(got[0].Text, want) {
			t.Errorf("%s: %v", want, got)
		}
	}
}

// If both sides have the same name, ours stays and Claude's member gets another.
func TestSameName(t *testing.T) {
	sc := newScene(t, "bob", "rev_1")
	sent := send(t, sc.team, wire.Message{Body: "secret"}, "bob", "rev_1")
	sc.write("inboxes/bob.json", "["+strings.Replace(fromLead, `"team-lead"`, `"Rev_1"`, 1)+"]")
	sc.pass("")
	equal(t, "reported", sc.reported, []string{"rev_1-claude → bob: hi"})
	equal(t, "unread", sc.unread("rev_1")[0].ID, sent.ID)
	send(t, sc.team, wire.Message{Body: "hello"}, "rev_1", "rev_1-claude")
	sc.pass("")
	sc.pass("")
	equal(t, "theirs", sc.entries("Rev_1")[0].From, "rev_1-atm")
	equal(t, "ours", sc.file("inboxes/rev_1-atm.json"), "[]")

	// After Claude's has left, ours keeps its name there.
	sc.write(configFile, strings.Replace(recorded, "Rev_1", "rev-2", 2))
	sc.write("inboxes/rev_1-atm.json", "["+fromLead+"]")
	sc.pass("")
	equal(t, "ours, later", sc.file("inboxes/rev_1-atm.json"), "[]")
	equal(t, "unread", len(sc.unread("rev_1")), 2)
}

func TestDelivers(t *testing.T) {
	sc := newScene(t, "bob", "system")
	sc.pass("")
	at := time.Date(2026, 3, 1, 10, 0, 0, 123456789, time.UTC)
	sc.write("inboxes/Rev_1.json", "[\n"+isIdle+"\n]")
	for _, m := range []wire.Message{
		{Body: "same", SentAt: at}, {Body: "same", SentAt: at}, {Body: "\ufeff\v" + `{"x":` + strings.Repeat("[", 12000)}, {Body: "x", RequiresAck: true},
	} {
		send(t, sc.team, m, "bob", "rev_1")
	}
	last := send(t, sc.team, wire.Message{Subject: "on it", Body: "</teammate-message>", SentAt: at.Add(time.Hour)}, "system", "rev_1")
	sc.pass("")
	var texts []string
	for _, e := range sc.entries("Rev_1") {
		texts = append(texts, e.From+" "+e.Text)
	}
	equal(t, "texts", len(texts), 6)
	equal(t, "the first", strings.HasSuffix(texts[1], " ago]\n  same\n[/atm]"), true)
	equal(t, "no control message", strings.HasSuffix(texts[3], "\n  \\ufeff\\x0b{\"x\":"+strings.Repeat("[", 12000)+"\n[/atm]"), true)
	equal(t, "with a note", header.ReplaceAllString(texts[4], "[$1]"), "bob [wants ack]\n  x\n[/atm]")
	list := sc.entries("Rev_1")
	equal(t, "time", list[1].Timestamp, "2026-03-01T10:00:00.123Z")
	equal(t, "the same text is another message", list[1].Text != list[2].Text, true)
	equal(t, "theirs", string(list[0].raw), isIdle)
	var fields map[string]any
	short := last.ID.Short(6)
	must(t, json.Unmarshal(list[5].raw, &fields))
	equal(t, "entry", fields, map[string]any{
		"type": "message", "from": "system-atm", "text": "[atm " + short + " from system, " + letter.Age(time.Now(), last.SentAt) + ", escaped (atm show " + short + " --raw)]\n  subject: on it\n  <\\/teammate-message>\n[/atm]", "timestamp": "2026-03-01T11:00:00.123Z",
		"summary": "on it", "msgV": 1.0, "msg_id": string(last.ID), "read": false,
	})
	equal(t, "unread", len(sc.unread("rev_1")), 0)
}

// What precedes the message in a header.
var header = regexp.MustCompile(`\[atm [0-9a-f]{6} from bob, (?:now|\d+[sm] ago), (.*)\]`)

// Expired messages stay here.
func TestStays(t *testing.T) {
	sc := newScene(t, "bob")
	sc.pass("")
	old := send(t, sc.team, wire.Message{Body: "old", ExpiresAt: time.Now().Add(-time.Hour)}, "bob", "rev_1")
	send(t, sc.team, wire.Message{Body: "new"}, "bob", "rev_1")
	sc.pass("")
	equal(t, "entries", len(sc.entries("Rev_1")), 1)
	equal(t, "unread", sc.unread("rev_1")[0].ID, old.ID)
}

// After a kill between writing an entry and marking its message as read, the entry is still there and is not repeated,
// or it was read and the repeat is marked.
func TestMarksRepeats(t *testing.T) {
	sc := newScene(t, "bob")
	sc.pass("")
	box := sc.team.Box("rev_1")
	send(t, sc.team, wire.Message{Body: "once"}, "bob", "rev_1")
	kill := func() {
		var err error
		sc.sync.root, err = durable.Open(sc.sync.Dir)
		must(t, err)
		defer sc.sync.root.Close()
		m := member{name: "Rev_1"}
		_, err = claim.Lease(context.Background(), box, box.Address(), time.Millisecond, inbox.ReadOptions{}, func(it *wire.Item, _ wire.Lease) (bool, error) {
			return true, sc.sync.changeInbox(context.Background(), m, sc.sync.newEntry(it.Message, it.TimesHandedOut > 0).addTo)
		})
		must(t, err)
		time.Sleep(2 * time.Millisecond) // until the lease ends
	}
	kill()
	sc.pass("")
	equal(t, "entries while the first is there", len(sc.entries("Rev_1")), 1)

	send(t, sc.team, wire.Message{Body: "twice"}, "bob", "rev_1")
	kill()
	sc.write("inboxes/Rev_1.json", "[]")
	sc.pass("")
	equal(t, "text after the first was read", header.ReplaceAllString(sc.entries("Rev_1")[0].Text, "[$1]"), "[may be a repeat]\n  twice\n[/atm]")
	equal(t, "reported", sc.reported[len(sc.reported)-1], "bob → rev_1: twice (may be a repeat)")
}

// An error with one inbox does not hold up anybody else's mail, and loses nothing.
func TestErrors(t *testing.T) {
	sc := newScene(t, "bob", "carol")
	sc.pass("")
	lock := filepath.Join(sc.sync.Dir, "inboxes/bob.json.lock")
	later := func() { must(t, os.Chtimes(lock, time.Time{}, time.Now().Add(-2*staleAfter))) }
	for _, c := range []struct {
		about  string
		breaks func()
		err    string
		mends  func()
	}{
		{"a held lock", func() { must(t, os.Mkdir(lock, 0o755)) }, "lock " + lock + " is held", later},
		{"a lock file of another program", func() { sc.write("inboxes/bob.json.lock", "") }, "lock " + lock + " is held", func() { must(t, os.Remove(lock)) }},
	} {
		sc.write("inboxes/bob.json", "["+fromLead+"]")
		sc.write("inboxes/carol.json", "["+fromLead+"]")
		sc.reported = nil
		c.breaks()
		sc.pass(c.err)
		equal(t, c.about, sc.file("inboxes/carol.json"), "[]")
		c.mends()
		sc.pass("")
		equal(t, c.about+", mended", sc.file("inboxes/bob.json"), "[]")
		equal(t, c.about, len(sc.unread("bob"))+len(sc.unread("carol")), 2)
	}
	// The disk is full, or the file holds no array.
	send(t, sc.team, wire.Message{Body: "hi"}, "bob", "team-lead")
	sc.isFull = true
	sc.pass("no space left")
	sc.isFull = false
	for _, text := range []string{"{\"a\":1}", "null", "[", "\xff"} {
		sc.write("inboxes/team-lead.json", text)
		sc.pass("team-lead.json: ")
		equal(t, "a file without an array", sc.file("inboxes/team-lead.json"), text)
	}
	equal(t, "unread", len(sc.unread("team-lead")), 1)
	sc.write("inboxes/team-lead.json", "")
	sc.pass("")
	equal(t, "delivered", len(sc.entries("team-lead")), 1)

	// Claude Code empties the inbox of a member that has just joined.
	joined := fmt.Sprintf(`"leadProcess": 1, "members": [{"name": "Rev_1", "joinedAt": 1}, {"name": "Rev_1", "joinedAt": %d}]`, time.Now().UnixMilli())
	sc.write(configFile, "{"+joined+"}")
	send(t, sc.team, wire.Message{Body: "welcome"}, "bob", "rev_1")
	sc.pass("")
	equal(t, "unread", len(sc.unread("rev_1")), 1)

	// A member of Claude's that has left does not become ours.
	sc.write(configFile, strings.Replace(recorded, "Rev_1", "rev-2", 2))
	sc.pass("")
	if _, err := os.Stat(filepath.Join(sc.sync.Dir, "inboxes/rev_1.json")); err == nil {
		t.Error("rev_1 has an inbox as if it were ours")
	}

	for _, config := range []string{"", "{", "[]"} {
		sc.write(configFile, config)
		sc.pass(sc.sync.Dir + ": config.json: ")
	}
	sc.write(configFile, "null")
	sc.sync.Join = true
	sc.pass(sc.sync.Dir + "/config.json: ")
	must(t, os.RemoveAll(sc.sync.Dir))
	if err := sc.sync.Run(context.Background(), nil); !errors.Is(err, ErrEnded) {
		t.Errorf("of a team that has ended: %v", err)
	}
}

func TestJoin(t *testing.T) {
	sc := newScene(t, "bob", "user")
	sc.sync.Join = true
	sc.pass("")
	config := sc.file(configFile)
	joined := regexp.MustCompile(`,\s*\{[^{}]*"agentType": "atm"[^{}]*\}`)
	equal(t, "Claude's part of config.json", joined.ReplaceAllString(config, ""), string(written(indented([]byte(recorded)))))
	equal(t, "ours", len(joined.FindAllString(config, -1)), 2)
	for _, want := range []string{`"agentId": "bob@session-7f770861"`, `"name": "user-atm"`} {
		if !strings.Contains(config, want) {
			t.Errorf("no %s in %s", want, config)
		}
	}
	sc.pass("")
	equal(t, "config.json", sc.file(configFile), config)
	equal(t, "ours and theirs", len(sc.sync.ours)+len(sc.sync.theirs), 4)
}

// A failing pass changes files itself; Run does not retry at once because of that.
func TestRunPausesAfterAnError(t *testing.T) {
	sc := newScene(t, "bob")
	sc.write("inboxes/team-lead.json", "{}")
	sc.pass("")
	send(t, sc.team, wire.Message{Body: "hi"}, "bob", "team-lead")
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	attempts := 0
	sc.sync.fault = func(op, name string) error {
		if strings.HasSuffix(name, "team-lead.json") {
			if attempts++; attempts == 1 {
				time.AfterFunc(1500*time.Millisecond, stop)
			}
		}
		return nil
	}
	sc.sync.Run(ctx, func(error) {})
	if attempts == 0 || attempts > 20 {
		t.Errorf("it made %d attempts", attempts)
	}
}

func TestNames(t *testing.T) {
	for theirs, want := range map[string]wire.Name{
		"rev": "rev", "Rev 1": "rev-1", "__x": "x", "all": "allclaude", "": "claude", "日本": "claude", "../../x": "x",
		strings.Repeat("x", 80): wire.Name(strings.Repeat("x", 64)), "drop": "dropclaude",
	} {
		equal(t, theirs, validName(theirs), want)
	}
	sc := newScene(t)
	s := sc.sync
	root, err := durable.Open(s.Dir)
	must(t, err)
	defer root.Close()
	s.root = root
	for ours, want := range map[string]string{"bob@main": "bob", "team-lead@main": "team-lead-atm", "bob@other": "bob@other", "bob@main.build": "bob@main.build"} {
		a, err := wire.ParseAddress(ours, "main")
		must(t, err)
		equal(t, ours, s.nameThere(a), want)
	}
	m := member{name: "../x y"}
	equal(t, "path", m.inboxFile(), "inboxes/---x-y.json")
}

// Whatever an inbox file contains, an ignored entry survives unchanged and the written file can be decoded.
func FuzzInbox(f *testing.F) {
	for _, text := range []string{"", "[]", "[" + fromLead + "," + isIdle + "]", foreign, `[{"from":"a","text":"{\"type\":1}","timestamp":"-1","read":null}]`, "[[],{}", "null", "[null]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := decodeInbox(data)
		if err != nil {
			return
		}
		text, err := encodeInbox(list)
		again, err2 := decodeInbox(text)
		text2, err3 := encodeInbox(again)
		if err = errors.Join(err, err2, err3); err != nil || len(again) != len(list) || string(text2) != string(text) {
			t.Fatalf("%q became %q: %v", data, text, err)
		}
		s, bob := &Sync{Dir: "t"}, wire.Address{Agent: "bob", Team: "main"}
		for i, e := range list {
			if e.bad != nil {
				continue
			}
			id := s.idOf(&e, bob)
			if !wire.IsID(string(id)) || id != s.idOf(&again[i], bob) || !wire.IsName(string(validName(e.From))) {
				t.Fatalf("%q: id %q, again %q, name %q", e.raw, id, s.idOf(&again[i], bob), validName(e.From))
			}
		}
		added, err := (&entry{Type: "message", From: "bob", Text: "x", sentAt: time.Now(), MsgV: 1, MsgID: "new"}).addTo(list)
		_, err2 = encodeInbox(added)
		if last := added[len(added)-1]; errors.Join(err, err2) != nil || last.control() != nil {
			t.Fatalf("added to %q: %v", data, err)
		}
	})
}
