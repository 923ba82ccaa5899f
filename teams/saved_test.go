package teams

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// What a runner was started with is kept, and what team.toml says otherwise since
// is named; what stands for the same is the same.
func TestChanged(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "bob")
	toml := func(text string) *config.Config {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(team.Dir().Path(), "team.toml"), []byte(text), 0o600))
		p, err := team.Config()
		must(t, err)
		return p
	}
	was := toml("[members.bob]\ncommand = [\"claude\"]\nprompt = \"x\"\n")
	if keys := team.Changed("bob", was); keys != nil {
		t.Errorf("nothing was started, and %q changed", keys)
	}
	must(t, team.SaveStart("bob", was.Members["bob"]))
	must(t, team.SavePolicy("bob", was.Policy("bob")))
	for text, want := range map[string][]string{
		"command = [\"claude\"]\nprompt = \"x\"\n": nil,
		"command = [\"claude\"]\nprompt = \"x\"\ncwd = \".\"\ndriver = \"auto\"\ninject = \"body\"\nrestart = \"on-crash\"\n": nil,
		"command = [\"claude\", \"-c\"]\nworktree = true\nenv = { A = \"1\" }\n":                                              {"command", "env", "prompt", "worktree"},
		"command = [\"claude\"]\nprompt = \"x\"\nrole = \"coder\"\n":                                                          {"rules"},
	} {
		if got := team.Changed("bob", toml("[members.bob]\n"+text)); !slices.Equal(got, want) {
			t.Errorf("%q changed, not %q: %s", got, want, text)
		}
	}
}

// Each stop is told from all before, and asking makes nobody a member.
func TestLastStop(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "bob")
	must(t, team.MarkStopped("bob")) // never run: no mark
	first, err := team.LastStop("bob")
	if err != nil || first != "never" {
		t.Fatal(first, err)
	}
	must(t, team.MarkStopped("bob"))
	second, err := team.LastStop("bob")
	must(t, err)
	must(t, team.MarkStopped("bob"))
	third, err := team.LastStop("bob")
	if err != nil || second == first || third == second || third == "" {
		t.Error(first, second, third, err)
	}
	if s, err := team.LastStop("carol"); s != "never" || err != nil {
		t.Error(s, err)
	}
	if _, err := os.Lstat(filepath.Join(team.Dir().Path(), "carol")); err == nil {
		t.Error("carol has a directory")
	}
}

// What team.toml says is read anew each time, and what could be understood of one
// with mistakes is there.
func TestConfig(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "alice", "bob")
	if c, err := team.Config(); err != nil || len(c.Members) != 0 || c.Session.OutputCapture != "pipe" {
		t.Error(c, err)
	}
	path := filepath.Join(team.Dir().Path(), "team.toml")
	must(t, os.WriteFile(path, []byte("lead = \"alice\"\n[members.bob]\nrole = \"coder\"\ncomand = [\"x\"]\ndriver = \"x\"\n"), 0o600))
	c, err := team.Config()
	var wrong *config.Error
	if !errors.As(err, &wrong) || len(wrong.Mistakes) != 2 || c.Lead != "alice" || c.Members["bob"].Role != "coder" {
		t.Fatal(c, err)
	}
	if want := path + `: line 4: there is no key "comand" in members.bob; did you mean "command"?, and 1 more`; wrong.Error() != want {
		t.Error(wrong)
	}
}

// Only the live run of this very agent counts.
func TestIsRun(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "alice", "bob")
	must(t, team.Dir().MkdirAll("bob/run"))
	must(t, team.Dir().Replace("bob/run/run.json", []byte(`{"run":"r1","runner":1}`), false))
	is := func(name wire.Name, run string) bool {
		t.Helper()
		ok, err := team.IsRun(name, run)
		must(t, err)
		return ok
	}
	if is("bob", "r1") {
		t.Error("it does not run")
	}
	held, err := team.HoldRunner(t.Context(), "bob")
	must(t, err)
	defer held.Release()
	if !is("bob", "r1") || is("bob", "r2") || is("bob", "") || is("alice", "r1") {
		t.Error("another run passes for bob's")
	}
}

// It is never written over one that is there, whatever that is.
func TestWriteConfig(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t))
	path, made, err := team.WriteConfig("# one\n")
	if err != nil || !made || path != team.Dir().Path()+"/team.toml" {
		t.Fatal(path, made, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if _, made, err = team.WriteConfig("# two\n"); made || err != nil {
		t.Error(made, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "# one\n" {
		t.Errorf("%q", data)
	}
	must(t, os.Remove(path))
	must(t, os.Symlink("/nowhere", path))
	if _, made, err = team.WriteConfig("# two\n"); made || err != nil {
		t.Error(made, err)
	}
	names, err := os.ReadDir(team.Dir().Path())
	must(t, err)
	if len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}
