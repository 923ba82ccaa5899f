package post

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// twoRoots are the roots app, with alice and carol, .
type twoRoots struct {
	place    rootdir.Place
	keys     string
	app, web *teamdir.Team
}

func newTwoRoots(t *testing.T) *twoRoots {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	teamtest.Must(t, err)
	r := &twoRoots{rootdir.Place{State: filepath.Join(dir, "state"), UID: os.Getuid(), Environ: os.Environ()}, filepath.Join(dir, "keys"), nil, nil}
	r.app, r.web = r.open(t, filepath.Join(dir, "app"), "alice", "carol"), r.open(t, filepath.Join(dir, "web"), "bob", "dora")
	keys := hostkey.Dir(r.keys)
	teamtest.Must(t, keys.AddLink(r.app.Root().Path, hostkey.Link{Name: "web", Root: r.web.Root().Path}))
	teamtest.Must(t, keys.AddLink(r.web.Root().Path, hostkey.Link{Name: "app", Root: r.app.Root().Path}))
	return r
}

func (r *twoRoots) open(t *testing.T, path string, members ...wire.Name) *teamdir.Team {
	t.Helper()
	_, err := rootdir.Make(path)
	teamtest.Must(t, err)
	teamtest.Must(t, rootdir.Accept(r.place, path))
	place := r.place
	place.Flag = path
	found, _, err := rootdir.Find(place)
	teamtest.Must(t, err)
	root, err := teamdir.OpenFound(found, nil)
	teamtest.Must(t, err)
	t.Cleanup(func() { root.Close() })
	root.KeysDir = r.keys
	return teamtest.NewTeam(t, root, members...)
}

func send(t *testing.T, from *teamdir.Team, by wire.Name, m *wire.Message, to ...wire.Address) *Sent {
	t.Helper()
	sent, err := Send(t.Context(), from.Root(), &Outgoing{From: from.Box(by), To: to, Message: m})
	teamtest.Must(t, err)
	return sent
}

var bobAtWeb = wire.Address{Agent: "bob", Team: "main", Host: "web"}

// bob@web is a mailbox: each side reads the addresses as it writes them, the same message comes once, and the ack, the answer
// and the progress are as in one root.
func TestLinked(t *testing.T) {
	r := newTwoRoots(t)
	carol := r.app.Box("carol").Address()
	elsewhere := wire.Address{Agent: "zoe", Team: "main", Host: "other"}
	m := &wire.Message{ID: wire.NewID(), Body: "?", RequiresAck: true}
	for range 2 {
		sent, err := Send(t.Context(), r.app.Root(), &Outgoing{From: r.app.Box("alice"), To: []wire.Address{bobAtWeb, carol, elsewhere}, Message: m})
		if err == nil || len(sent.To) != 3 || !sent.To[0].IsStored || sent.To[0].Address != bobAtWeb || sent.To[2].Err == nil {
			t.Fatalf("%+v, %v", sent, err)
		}
	}
	if got := teamtest.UnreadOf(t, r.web, "bob"); len(got) != 1 {
		t.Fatalf("bob has %q", got)
	}
	there, err := r.web.Box("bob").Get(m.ID)
	teamtest.Must(t, err)
	alice := wire.Address{Agent: "alice", Team: "main", Host: "app"}
	if there.From != alice || len(there.To) != 2 || there.To[0] != r.web.Box("bob").Address() || there.To[1].String() != "carol@main.app" {
		t.Errorf("bob sees %s to %v", there.From, there.To)
	}

	answer := &wire.Message{Body: "!"}
	_, err = Send(t.Context(), r.web.Root(), &Outgoing{From: r.web.Box("bob"), To: []wire.Address{there.From}, Parent: there.Message, Message: answer})
	teamtest.Must(t, err)
	for _, outcome := range []string{"blocked", "done", "done"} {
		ack := &wire.Message{Body: outcome}
		ack.SetOutcome(outcome)
		_, err := Ack(t.Context(), r.web.Root(), r.web.Box("bob"), r.web.Box("bob"), there.Message, ack)
		teamtest.Must(t, err)
	}
	sent, err := r.app.Box("alice").Sent(m.ID)
	teamtest.Must(t, err)
	acks, err := AcksOf(r.app.Root(), sent, bobAtWeb)
	if err != nil || len(acks) != 2 || acks[1].Outcome() != "done" || acks[1].From != bobAtWeb {
		t.Errorf("acks %+v, %v", acks, err)
	}
	trace := AnswersTo(t.Context(), r.app.Root(), sent).Trace(sent, bobAtWeb)
	for _, stage := range []string{"stored", "read", "acked", "replied", "outcome"} {
		if !trace.Reached(stage) || trace.Stage(stage).Host != "" {
			t.Errorf("%s: %+v", stage, trace.Stage(stage))
		}
	}
	if trace.State != wire.Done {
		t.Errorf("it is %s", trace.State)
	}
	answers := AnswersTo(t.Context(), r.web.Root(), there.Message)
	if !answers.IsAnswered(there.Message, r.web.Box("bob").Address()) {
		t.Error("bob has not answered, as web sees it")
	}
}

// Nothing goes into a root that may not act, is gone, or has no link back, not even a draft, and what is there now counts.
func TestLinkedRefused(t *testing.T) {
	r := newTwoRoots(t)
	path := r.web.Root().Path
	send(t, r.app, "alice", &wire.Message{Body: "first"}, bobAtWeb) // app has web open from now on
	fails := func(why any) {
		t.Helper()
		m := &wire.Message{Body: "no"}
		_, err := Send(t.Context(), r.app.Root(), &Outgoing{From: r.app.Box("alice"), To: []wire.Address{bobAtWeb}, Message: m})
		if text, isText := why.(string); isText && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%v, not %s", err, text)
		} else if known, isErr := why.(error); isErr && !errors.Is(err, known) {
			t.Errorf("%v, not %v", err, known)
		}
		if _, err := r.app.Box("alice").Sent(m.ID); err == nil {
			t.Error("it counts as sent")
		}
	}
	restored := filepath.Join(path, rootdir.RestoredFile)
	teamtest.Must(t, os.WriteFile(restored, nil, 0o600))
	fails("a backup was restored into")
	teamtest.Must(t, os.Remove(restored))
	teamtest.Must(t, os.Rename(path, path+".moved"))
	fails(teamdir.ErrNotThere)
	other := r.open(t, path, "bob")
	send(t, r.app, "alice", &wire.Message{Body: "anew"}, bobAtWeb)
	if got := teamtest.UnreadOf(t, other, "bob"); len(got) != 1 || got[0] != "anew" {
		t.Errorf("the root there has %q", got)
	}
	if got := teamtest.UnreadOf(t, r.web, "bob"); len(got) != 1 || got[0] != "first" {
		t.Errorf("the moved root has %q", got)
	}
	teamtest.Must(t, os.RemoveAll(filepath.Join(path, "main", "bob")))
	fails(maildir.ErrNoMailbox)
	teamtest.Must(t, hostkey.Dir(r.keys).RemoveLink(path, "app"))
	fails(hostkey.ErrNoLink)
	teamtest.Must(t, hostkey.Dir(r.keys).AddLink(path, hostkey.Link{Name: "web", Root: r.app.Root().Path}))
	fails(teamdir.ErrSameName)
}

// What the sender takes back is withdrawn there.
func TestLinkedWithdrawn(t *testing.T) {
	r := newTwoRoots(t)
	m := &wire.Message{Body: "not for long"}
	send(t, r.app, "alice", m, bobAtWeb)
	state, err := Withdraw(t.Context(), r.app.Root(), r.app.Box("alice"), m, bobAtWeb, nil)
	if err != nil || state != wire.Unread {
		t.Fatal(state, err)
	}
	if it, err := r.web.Box("bob").Get(m.ID); err != nil || it.State != wire.Withdrawn {
		t.Errorf("%+v, %v", it, err)
	}
	if at := AnswersTo(t.Context(), r.app.Root(), m).At(m, bobAtWeb); at.State != wire.Withdrawn {
		t.Errorf("alice sees it as %s", at.State)
	}
}
