package teams

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a runner was started with is kept, and what team.toml says otherwise since
// is named; what stands for the same is the same.
func TestChanged(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "bob")
	toml := func(text string) *Plan {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(team.Dir().Path(), "team.toml"), []byte(text), 0o600))
		p, err := team.Plan()
		must(t, err)
		return p
	}
	was := toml("[members.bob]\ncommand = [\"claude\"]\nprompt = \"x\"\n")
	if keys := team.Changed("bob", was); keys != nil {
		t.Errorf("nothing was started, and %q changed", keys)
	}
	must(t, team.KeepStart("bob", was.Members["bob"]))
	must(t, team.KeepPolicy("bob", was.Policy()))
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
