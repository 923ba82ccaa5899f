package teamdir

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRoot makes a root; told may be nil.
func newRoot(t *testing.T, told Told) *Root { t.Helper(); return newFaultyRoot(t, told, nil) }

func newFaultyRoot(t *testing.T, told Told, fault durable.Fault) *Root {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	_, err := rootdir.Make(path)
	must(t, err)
	durable.FailNext(path, fault)
	r, err := OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag}, told)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func newTeam(t *testing.T, r *Root, members ...wire.Name) *Team {
	t.Helper()
	team, err := r.CreateTeam("main")
	must(t, err)
	for _, m := range members {
		must(t, team.Create(context.Background(), m))
	}
	return team
}

func postMail(t *testing.T, team *Team, from, to wire.Name, body string, with ...func(*wire.Message)) wire.ID {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: team.Box(from).Address(), To: []wire.Address{team.Box(to).Address()}, Body: body}
	for _, f := range with {
		f(m)
	}
	p := &maildir.Post{Message: m, To: []*maildir.Box{team.Box(to)}, Sender: team.Box(from)}
	maildir.Deliver(context.Background(), p)
	must(t, p.Outcomes[0].Err)
	return m.ID
}

// unreadOf returns the bodies of a member's unread messages.
func unreadOf(t *testing.T, team *Team, name wire.Name) (out []string) {
	t.Helper()
	if _, err := team.Box(name).Walk(context.Background(), maildir.Range{Unread: true}, func(it *maildir.Item) bool {
		out = append(out, it.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// happen appends events: kind, then key=value words.
func happen(t testing.TB, team *Team, agent wire.Name, events ...string) {
	t.Helper()
	var list []wire.Event
	for _, s := range events {
		words := strings.Fields(s)
		e := wire.Event{Source: "cli"}
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
	must(t, team.Box(agent).Log().Append(context.Background(), list...))
}

// gitIn runs git in dir without the configuration of the user who runs the test.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = gitEnviron(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func gitEnviron(t *testing.T) []string {
	return append(git.CleanEnviron(os.Environ()), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
}

// repositoryTeam makes a team whose root is in a new repository and excluded from git.
func repositoryTeam(t *testing.T, told Told) (team *Team, repo string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	repo = filepath.Join(top, "repo")
	must(t, os.MkdirAll(filepath.Join(repo, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(repo, "sub", "b.txt"), []byte("two"), 0o600))
	gitIn(t, repo, "init", "-q", "-b", "main")
	path := filepath.Join(repo, ".atm")
	_, err = rootdir.Make(path)
	must(t, err)
	err = git.Exclude(path)
	must(t, err)
	root, err := OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag}, told)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return newTeam(t, root, "bob"), repo
}

func readAll(t *testing.T, team *Team, name wire.Name) {
	t.Helper()
	_, err := team.Box(name).Read(context.Background(), maildir.ReadOptions{}, func(b maildir.Batch) (int, error) { return len(b.Items), nil })
	must(t, err)
}
