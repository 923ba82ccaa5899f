package bridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// rowsOf returns the rows of a host that a machine has.
func (m *machine) rowsOf(host wire.Name) *presence.Rows {
	all, err := presence.ReadRows(m.Team)
	must(m.t, err)
	if n := slices.IndexFunc(all, func(r presence.Rows) bool { return r.Host == host }); n >= 0 {
		return &all[n]
	}
	return nil
}

// ask makes a member ask for a permission, as a program does over the older ACP wire.
func (m *machine) ask(agent wire.Name) {
	m.t.Helper()
	e, err := foreign.Adopt([]byte(`{"sessionId":"s1","toolCall":{"id":"tc-1","name":"deploy","arguments":{},"timestamp":"2026-01-01T00:00:00Z"},"options":[{"id":"yes","label":"Yes"},{"id":"no","label":"No"}]}`))
	must(m.t, err)
	must(m.t, m.Team.Box(agent).Log().Append(m.t.Context(), e))
}

// Rows are known for a minute, and not again when the same ones come again.
func TestOldRows(t *testing.T) {
	t.Parallel()
	laptop := newMachine(t, "", "laptop", "alice")
	now := time.Now().UTC()
	odd := &reducer.Usage{Figures: reducer.Figures{Cost: 1, Currency: "\x1b[2J"}}
	rows := presence.Rows{Host: "build", At: now, ReceivedAt: now.Add(-time.Hour), Members: []presence.Row{{Member: presence.Member{Name: "bob", State: reducer.WordIdle, Usage: odd, OtherHost: presence.OtherHost{Clock: "\x1b[2J"}}}}}
	must(t, presence.SaveRows(laptop.Team, rows))
	again := rows
	again.ReceivedAt = now
	must(t, presence.SaveRows(laptop.Team, again))
	if m, err := presence.One(t.Context(), laptop.Team, "bob@build"); err != nil || m.State != reducer.WordUnknown {
		t.Errorf("bob@build is %+v, %v", m, err)
	}
	again.At = now.Add(-time.Second)
	if err := presence.SaveRows(laptop.Team, again); err == nil || !strings.Contains(err.Error(), "remove ") {
		t.Errorf("older rows: %v", err)
	}
	again.At = now.Add(time.Second)
	must(t, presence.SaveRows(laptop.Team, again))
	if m, err := presence.One(t.Context(), laptop.Team, "bob@build"); err != nil || m.State != reducer.WordIdle || m.Clock != "" || m.Usage != nil {
		t.Errorf("bob@build is %+v, %v", m, err)
	}
}

// Nobody can write rows of a host without its key.
func TestForgedRows(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	must(t, onceEach(build, laptop))
	before := laptop.rowsOf("build")
	bucket, err := laptop.connectForTest(t).KeyValue(t.Context(), laptop.server.stream())
	must(t, err)
	theirs, err := build.keys().Private("build")
	must(t, err)
	ours, err := laptop.keys().Private("laptop")
	must(t, err)
	content, err := json.Marshal(presence.Rows{Host: "build", Members: []presence.Row{{Member: presence.Member{Name: "eve", State: reducer.WordIdle}}}})
	must(t, err)
	e := Envelope{Kind: KindRows, ID: wire.NewID(), Team: "main", FromHost: "build", At: before.At.Add(time.Second), Content: content}
	old, other, mail := e, e, e
	old.At, other.Team, mail.Kind = before.At.Add(-time.Second), "other", KindMail
	torn := e
	torn.Content = []byte(`{"host":1}`)
	for why, data := range map[string][]byte{
		"not signed by the trusted key":  e.Sign(ours),
		"older than the rows that build": old.Sign(theirs),
		"and team other":                 other.Sign(theirs),
		"it is mail":                     mail.Sign(theirs),
		"cannot unmarshal":               torn.Sign(theirs),
		"not an envelope":                []byte("rows"),
	} {
		_, err = bucket.Put(t.Context(), "rows.build", data)
		must(t, err)
		must(t, onceEach(laptop))
		if now := laptop.rowsOf("build"); len(now.Members) != 2 || !strings.Contains(laptop.log(), why) {
			t.Errorf("%s: laptop has %+v; said:\n%s", why, now, laptop.log())
		}
	}
	_, err = bucket.Put(t.Context(), "rows.cloud", e.Sign(theirs))
	must(t, err)
	must(t, onceEach(laptop))
	if laptop.rowsOf("cloud") != nil || !strings.Contains(laptop.log(), "rows.cloud: it is rows of host build") {
		t.Errorf("rows under another host's key; said:\n%s", laptop.log())
	}
}

// An answer from another host counts once, and only by the rules of the agent's host.
func TestAnswersOfAnotherHost(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	var asked time.Time // the time of the last open question
	answer := func(change func(*notices.PermissionReply)) wire.ID {
		r := notices.PermissionReply{Decision: "approve", Question: "tc-1", Since: asked}
		if change != nil {
			change(&r)
		}
		payload, _ := json.Marshal(r)
		return laptop.send("alice", "bob@main.build", func(m *wire.Message) { m.Type, m.Payload = wire.TypePermissionReply, payload })
	}
	open := func() int {
		q, err := presence.Questions(build.Team, "bob")
		must(t, err)
		if len(q) > 0 {
			asked = q[0].Since
		}
		return len(q)
	}
	refused := 0
	check := func(about string, wantOpen int, wantRefusal string) {
		t.Helper()
		if err := onceEach(laptop, build, laptop); (err != nil) != (about == "with a full disk") {
			t.Errorf("%s: %v", about, err)
		}
		got := laptop.unread("alice")
		if wantRefusal != "" {
			refused++
		}
		if len(got) != refused || wantRefusal != "" && !strings.Contains(got[refused-1].Body, wantRefusal) || open() != wantOpen || len(build.unread("bob")) != 0 {
			t.Fatalf("%s: %d open, alice got %+v; said:\n%s", about, open(), got, build.log())
		}
	}
	build.ask("bob")
	check("none", 1, "")
	answer(nil)
	check("without approvers", 1, "team.toml names none")
	must(t, os.WriteFile(build.Team.Dir().Join("team.toml"), []byte(`approvers = ["carol", "bob@laptop"]`), 0o600))
	answer(nil)
	check("another is named", 1, "only approvers may answer: carol, bob@laptop")
	must(t, os.WriteFile(build.Team.Dir().Join("team.toml"), []byte(`approvers = ["carol", "alice@laptop"]`), 0o600))
	answer(func(r *notices.PermissionReply) { r.Question = "tc-2" })
	check("another question", 1, "that question is closed")
	answer(func(r *notices.PermissionReply) { r.Since = asked.Add(-time.Second) })
	check("the same id, asked before", 1, "that question is closed")
	answer(func(r *notices.PermissionReply) { r.Decision, r.Option = "reject", "yes" })
	check("a no that says yes", 1, `does not say no`)
	answer(func(r *notices.PermissionReply) { r.Option = "No" })
	check("a yes that says no", 1, `says no`)
	answer(func(r *notices.PermissionReply) { r.Option = "perhaps" })
	check("what is no option", 1, "is not one of the options")
	id := answer(nil)
	file := laptop.Team.Dir().Join(".bridge/build/new/" + string(id) + ".json")
	data, err := os.ReadFile(file)
	must(t, err)
	// An I/O error is no refusal: the answer comes again.
	build.full.Store("bob/events")
	check("with a full disk", 1, "")
	build.full.Store("nothing")
	build.eventually("answered", func() bool { return onceEach(build) == nil && open() == 0 })
	check("named", 0, "")
	sent, err := laptop.Team.Box("alice").Sent(id)
	must(t, err)
	for _, stage := range post.AnswersTo(t.Context(), laptop.Root, sent).Trace(sent, sent.To[0]).Stages {
		if (stage.Evidence != "") != (stage.Name == "acked") {
			t.Errorf("stage %+v", stage)
		}
	}
	answer(nil)
	check("the same once more", 0, "")
	answer(func(r *notices.PermissionReply) { r.Option = "yes" })
	check("with the option that it was", 0, "")
	answer(func(r *notices.PermissionReply) { r.Decision, r.Reason = "reject", "I thought again" })
	check("the contrary", 0, "already answered by alice@laptop")

	// The same message again answers no other question, not even the same one asked again.
	build.ask("bob")
	must(t, os.WriteFile(file, data, 0o600))
	stream, err := build.connectForTest(t).Stream(t.Context(), build.server.stream())
	must(t, err)
	must(t, stream.DeleteConsumer(t.Context(), "build"))
	check("again", 1, "")
}

// A stuck runner does not block other mail for long, and after the last try the sender gets a notice.
func TestAnswerToStuckRunner(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	must(t, os.WriteFile(build.Team.Dir().Join("team.toml"), []byte(`approvers = ["alice@laptop"]`), 0o600))
	build.ask("bob")
	lock, err := build.Team.Locks().Lock(t.Context(), "bob.runner", lockfile.Exclusive, 0, nil)
	must(t, err)
	t.Cleanup(func() { lock.Unlock() })
	run := filepath.Join(build.Team.Box("bob").Path(), "run")
	must(t, os.MkdirAll(run, 0o700))
	runner, err := control.Listen(run)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- runner.Serve(ctx, stuckRunner{}) }()
	t.Cleanup(func() { stop(); <-ended; runner.Close() })

	open, err := presence.Questions(build.Team, "bob")
	must(t, err)
	payload, _ := json.Marshal(notices.PermissionReply{Decision: "approve", Question: "tc-1", Since: open[0].Since})
	data := laptop.sign(&Envelope{ToHost: "build"}, `{"id":"%s","type":"permission_reply","from":"alice@main.laptop","to":["bob@main.build"],"body":"approve","payload":`+string(payload)+`}`)
	must(t, build.connect(t.Context()))
	t.Cleanup(func() { build.server.conn.Close() })
	began := time.Now()
	if m := build.arrives(data, 9); m.nacked != 1 || len(build.waiting("laptop")) > 0 || time.Since(began) > 12*apiTimeout {
		t.Errorf("the ninth time: %+v after %v, said:\n%s", m, time.Since(began), build.log())
	}
	if m := build.arrives(data, 10); m.acked != 1 || build.reasons() != "" {
		t.Errorf("the tenth time: %+v, bad: %s", m, build.reasons())
	}
	must(t, onceEach(build, laptop))
	got := laptop.unread("alice")
	if len(got) != 1 || got[0].Subject != "bob@build: your answer failed" || !strings.Contains(got[0].Body, "does not answer") {
		t.Errorf("alice got %+v; build said:\n%s", got, build.log())
	}
}

// stuckRunner never answers.
type stuckRunner struct{ control.Runner }

func (stuckRunner) CheckRight(control.Right, int, string) error { return nil }

func (stuckRunner) Status(context.Context) (s control.Status, err error) { return s, nil }

func (stuckRunner) Answer(ctx context.Context, _ ask.Answer) (o control.Outcome, err error) {
	<-ctx.Done()
	return o, ctx.Err()
}

// Any rows of a host are shown with known words only, and without control characters.
func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"host":"build","at":"2026-11-20T09:46:47Z","received_at":"2026-11-20T09:46:47Z","members":[{"name":"bob","state":"idle"}]}`))
	f.Add([]byte(`{"host":"build","members":[{"name":"../bob","state":"\u001b[2J","questions":[{"kind":"\u001b","options":null},{"kind":"draft"},{"kind":"permission"}]}]}`))
	m := newMachine(f, "", "laptop", "alice")
	must(f, presence.SaveRows(m.Team, presence.Rows{Host: "build"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		must(t, m.Team.Dir().Replace(teamdir.RowsDir+"/build.json", data, false))
		members, err := presence.Members(t.Context(), m.Team)
		for _, r := range members[1:] { // behind alice
			name, isRemote := strings.CutSuffix(string(r.Name), "@build")
			shown := strings.Join(command.Team([]presence.Member{r}, 0, false), "")
			for _, q := range r.Questions {
				if q.Kind == ask.KindDraft || q.Host != "build" || q.Agent != r.Name {
					t.Errorf("%q asks %+v", data, q)
				}
			}
			if err != nil || !isRemote || !wire.IsName(name) || strings.ContainsFunc(shown, unicode.IsControl) {
				t.Errorf("%q is shown as %q, %v", data, shown, err)
			}
			if isOld := r.SeenAt == nil || time.Since(*r.SeenAt).Abs() > time.Minute; isOld && r.State != reducer.WordUnknown {
				t.Errorf("%q: old, and %s", data, r.State)
			}
		}
	})
}
