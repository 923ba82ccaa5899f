// Package teamtest makes teams for tests.
package teamtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewRoot makes a root; told may be nil.
func NewRoot(t testing.TB, told teamdir.Told) *teamdir.Root {
	t.Helper()
	return NewFaultyRoot(t, told, nil)
}

func NewFaultyRoot(t testing.TB, told teamdir.Told, fault durable.Fault) *teamdir.Root {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	_, err := rootdir.Make(path)
	Must(t, err)
	r, err := teamdir.OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag, Fault: fault}, told)
	Must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func NewTeam(t testing.TB, r *teamdir.Root, members ...wire.Name) *teamdir.Team {
	t.Helper()
	team, err := r.CreateTeam("main")
	Must(t, err)
	for _, m := range members {
		Must(t, team.Store.Create(context.Background(), m))
	}
	return team
}

func Post(t *testing.T, team *teamdir.Team, from, to wire.Name, body string, with ...func(*wire.Message)) wire.ID {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: team.Box(from).Address(), To: []wire.Address{team.Box(to).Address()}, Body: body}
	for _, f := range with {
		f(m)
	}
	p := &maildir.Post{Message: m, To: []*maildir.Box{team.Box(to)}, Sender: team.Box(from)}
	maildir.Deliver(context.Background(), p)
	Must(t, p.Outcomes[0].Err)
	return m.ID
}

// UnreadOf returns the bodies of a member's unread messages.
func UnreadOf(t *testing.T, team *teamdir.Team, name wire.Name) (out []string) {
	t.Helper()
	if _, err := inbox.Walk(context.Background(), team.Box(name), maildir.Range{Unread: true}, func(it *wire.Item) bool {
		out = append(out, it.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Happen appends events: kind, then key=value words.
func Happen(t testing.TB, team *teamdir.Team, agent wire.Name, events ...string) {
	t.Helper()
	var list []wire.Event
	for _, s := range events {
		words := strings.Fields(s)
		e := wire.Event{Source: wire.SourceCLI}
		if words[0] == "pty" || words[0] == "hook" {
			e.Source, words = words[0], words[1:]
		}
		e.Kind = words[0]
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			switch k {
			case "turn":
				e.TurnID = v
			case "session":
				e.Session = v
			default:
				e = e.With(k, v)
			}
		}
		list = append(list, e)
	}
	Must(t, team.Box(agent).Log().Append(context.Background(), list...))
}

// GitIn runs git in dir without the configuration of the user who runs the test.
func GitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = GitEnviron(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func GitEnviron(t *testing.T) []string {
	return append(git.CleanEnviron(os.Environ()), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
}

// RepositoryTeam makes a team whose root is in a new repository and excluded from git.
func RepositoryTeam(t *testing.T, told teamdir.Told) (team *teamdir.Team, repo string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	Must(t, err)
	repo = filepath.Join(top, "repo")
	Must(t, os.MkdirAll(filepath.Join(repo, "sub"), 0o700))
	Must(t, os.WriteFile(filepath.Join(repo, "sub", "b.txt"), []byte("two"), 0o600))
	GitIn(t, repo, "init", "-q", "-b", "main")
	path := filepath.Join(repo, ".atm")
	_, err = rootdir.Make(path)
	Must(t, err)
	err = git.Exclude(path)
	Must(t, err)
	root, err := teamdir.OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag}, told)
	Must(t, err)
	t.Cleanup(func() { root.Close() })
	return NewTeam(t, root, "bob"), repo
}

func ReadAll(t *testing.T, team *teamdir.Team, name wire.Name) {
	t.Helper()
	_, err := inbox.Read(context.Background(), team.Box(name), inbox.ReadOptions{}, func(b inbox.Batch) (int, error) { return len(b.Items), nil })
	Must(t, err)
}
