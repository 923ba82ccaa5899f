package teamdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A runner keeps the rules that it was started with: a change of team.toml is noticed.
func TestHasOtherRules(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "bob")
	path := filepath.Join(team.Dir().Path(), "team.toml")
	must(t, os.WriteFile(path, []byte("[members.bob]\nrole = \"coder\"\n"), 0o600))
	if team.HasOtherRules("bob") {
		t.Error("nothing was started")
	}
	p, err := team.PolicyNow("bob")
	must(t, err)
	must(t, team.SavePolicy("bob", p))
	if team.HasOtherRules("bob") {
		t.Error("the same rules are others")
	}
	smith := "[members.smith]\nrole = \"smith\"\n[[rules]]\nagent = \"smith\"\ntool = \"*\"\ndecision = \"deny\"\n"
	must(t, os.WriteFile(path, []byte("[members.bob]\nrole = \"coder\"\n"+smith), 0o600))
	if team.HasOtherRules("bob") {
		t.Error("the rules of another count")
	}
	must(t, os.WriteFile(path, []byte("[[rules]]\ntool = \"Edit\"\ndecision = \"deny\"\n"), 0o600))
	if !team.HasOtherRules("bob") {
		t.Error("other rules are the same")
	}
}

// Each stop has an identity of its own, and asking for it creates no directory.
func TestLastStop(t *testing.T) {
	t.Parallel()
	team := newTeam(t, newRoot(t), "bob")
	first := team.LastStop("bob")
	must(t, team.MarkStopped("bob"))
	second := team.LastStop("bob")
	must(t, team.MarkStopped("bob"))
	if third := team.LastStop("bob"); first != "" || second == first || third == second || third == first {
		t.Error(first, second, third)
	}
	if err := team.MarkStopped("carol"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if s := team.LastStop("carol"); s != "" {
		t.Error(s)
	}
	if _, err := os.Lstat(filepath.Join(team.Dir().Path(), "carol")); err == nil {
		t.Error("carol has a directory")
	}
}

// WriteConfig replaces nothing, not even a dangling link.
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
