package teamdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
)

// A runner keeps the rules that it was started with: a change of team.toml is noticed.
func TestHasOtherRules(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	path := filepath.Join(team.Dir().Path(), "team.toml")
	teamtest.Must(t, os.WriteFile(path, []byte("[members.bob]\nrole = \"coder\"\n"), 0o600))
	if team.HasOtherRules("bob") {
		t.Error("nothing was started")
	}
	p, err := team.PolicyNow("bob")
	teamtest.Must(t, err)
	teamtest.Must(t, team.SavePolicy("bob", p))
	if team.HasOtherRules("bob") {
		t.Error("the same rules are others")
	}
	smith := "[members.smith]\nrole = \"smith\"\n[[rules]]\nagent = \"smith\"\ntool = \"*\"\ndecision = \"deny\"\n"
	teamtest.Must(t, os.WriteFile(path, []byte("[members.bob]\nrole = \"coder\"\n"+smith), 0o600))
	if team.HasOtherRules("bob") {
		t.Error("the rules of another count")
	}
	teamtest.Must(t, os.WriteFile(path, []byte("[[rules]]\ntool = \"Edit\"\ndecision = \"deny\"\n"), 0o600))
	if !team.HasOtherRules("bob") {
		t.Error("other rules are the same")
	}
}

// team.toml is read once, until it changes, or who is a member: who is called lead is.
func TestConfigIsReadOnce(t *testing.T) {
	t.Parallel()
	opened := 0
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		if op == "open" && name == "main/team.toml" {
			opened++
		}
		return nil
	})
	team := teamtest.NewTeam(t, r, "bob", "eve")
	path := team.Dir().Join("team.toml")
	leadIs := func(want string) {
		t.Helper()
		c, err := team.Config()
		if err != nil || string(c.Lead) != want {
			t.Errorf("the lead is %q, not %q: %v", c.Lead, want, err)
		}
	}
	leadIs("")
	teamtest.Must(t, os.WriteFile(path, []byte("lead = \"bob\"\n"), 0o600))
	leadIs("bob")
	teamtest.Must(t, os.WriteFile(path, []byte("lead = \"eve\"\n"), 0o600))
	leadIs("eve")
	old := time.Now().Add(-time.Hour)
	teamtest.Must(t, os.Chtimes(path, old, old))
	teamtest.Must(t, os.Chtimes(team.Dir().Path(), old, old))
	opened = 0
	for range 40 {
		leadIs("eve")
	}
	if opened != 1 {
		t.Errorf("it was read %d times", opened)
	}
	teamtest.Must(t, os.WriteFile(path, []byte("[members.bob]\nrole = \"a\"\n"), 0o600))
	teamtest.Must(t, os.Chtimes(path, old, old))
	leadIs("")
	teamtest.Must(t, team.Store.Create(t.Context(), "lead"))
	leadIs("lead")
}

// A saved policy that is not as it was saved allows nobody anything: what is missing may be who may answer, and what is
// unknown a rule that denies. team.toml, which may allow more, does not take its place.
func TestDamagedPolicy(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob", "carol")
	teamtest.Must(t, os.WriteFile(filepath.Join(team.Dir().Path(), "team.toml"), []byte("[[rules]]\ntool = \"*\"\ndecision = \"allow\"\n"), 0o600))
	saved := policy.Policy{Lead: "carol", Rules: policy.Rules{{Tool: "Bash(git <*)", Decision: policy.Deny}}}
	teamtest.Must(t, team.SavePolicy("bob", saved))
	if p, isSaved, err := team.PolicyFor("bob"); err != nil || !isSaved || !p.Equal(saved) || team.CheckPolicy("bob") != nil {
		t.Fatal(p, isSaved, err)
	}
	for content, want := range map[string]string{
		"":                                     "it is no JSON: ",
		`{"lead":"carol","`:                    "it is no JSON: ",
		"null":                                 "it is no JSON object",
		"[]":                                   "it is no JSON object, but a JSON array",
		`"deny"`:                               "it is no JSON object, but a JSON string",
		"{}":                                   "it is not as atm writes it",
		`{"lead":"carol"}`:                     "it is not as atm writes it",
		`{"lead":"carol","approvers":"carol"}`: `"approvers" may not be a JSON string`,
		`{"approvers":null,"rules":{"tool":"*"}}`:                                    `"rules" may not be a JSON object`,
		`{"approvers":null,"RULES":[{"tool":"*","decision":"deny"}]}`:                "it is not as atm writes it",
		`{"approvers":null,"rules":[{"tool":"*"}]}`:                                  "it is not as atm writes it",
		`{"approvers":null,"rules":[{"tool":"*","decision":"allow","Tool":"Bash"}]}`: "it is not as atm writes it",
	} {
		teamtest.Must(t, os.WriteFile(team.Dir().Join("bob/run/policy.json"), []byte(content), 0o600))
		p, _, err := team.PolicyFor("bob")
		var e *durable.FormatError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), team.Dir().Join("bob/run/policy.json")) {
			t.Errorf("%s: %v", content, err)
		}
		if p.Rules != nil || p.Check(policy.Answer, "bob", policy.Actor{Name: "carol"}) == nil || !p.Mute {
			t.Errorf("%s: it allows something: %+v", content, p)
		}
		if team.CheckPolicy("bob") == nil || team.HasOtherRules("bob") {
			t.Errorf("%s: doctor does not name it, or takes it for another policy", content)
		}
	}
	teamtest.Must(t, team.SavePolicy("bob", saved)) // the next start
	if _, _, err := team.PolicyFor("bob"); err != nil {
		t.Error(err)
	}
}

// Of a policy that a newer version has saved, the known part counts, as far as it denies and names who may answer.
func TestPolicyOfNewerVersion(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob", "carol")
	teamtest.Must(t, team.SavePolicy("bob", policy.Policy{}))
	const rules = `"approvers":null,"people":["me"],"rules":[{"tool":"Bash","decision":"deny"},{"tool":"*","decision":"allow"}]`
	for content, unknown := range map[string]string{
		`{"version":2,"lead":"carol",` + rules + `}`: `"version"`,
		`{"lead":"carol","approvers":null,"people":["me"],"rules":[{"tool":"Bash","decision":"deny","unless":"x"},{"tool":"*","decision":"allow"}]}`: `"rules.unless"`,
		`{"lead":"carol","approvers":null,"people":["me"],"rules":[{"tool":"Bash","decision":"deny"},{"tool":"*","decision":"twice"}]}`:              `decision "twice"`,
	} {
		teamtest.Must(t, os.WriteFile(team.Dir().Join("bob/run/policy.json"), []byte(content), 0o600))
		p, isSaved, err := team.PolicyFor("bob")
		if err != nil || !isSaved || !p.IsPartial || p.Mute {
			t.Errorf("%s: %+v, %v", content, p, err)
		}
		if d := p.Rules.Decide(policy.Request{Tool: "Edit", Input: "x"}); d != policy.Ask {
			t.Errorf("%s: a rule says %q", content, d)
		}
		if d := p.Rules.Decide(policy.Request{Tool: "Bash", Input: "x", Command: true}); d != policy.Deny {
			t.Errorf("%s: the rule that denies says %q", content, d)
		}
		if err := p.Check(policy.Answer, "bob", policy.Actor{Name: "me"}); err != nil {
			t.Errorf("%s: %v", content, err)
		}
		if p.Check(policy.Answer, "bob", policy.Actor{Name: "carol", IsAgent: true}) == nil {
			t.Errorf("%s: an agent may answer", content)
		}
		if err := team.CheckPolicy("bob"); err == nil || !strings.Contains(err.Error(), "policy.json: another version of atm wrote it: this one does not know its "+unknown) {
			t.Errorf("%s: %v", content, err)
		}
		if team.HasOtherRules("bob") {
			t.Errorf("%s: it is taken for another policy", content)
		}
	}
}

// Each stop has an identity of its own, and asking for it creates no directory.
func TestLastStop(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	first := team.LastStop("bob")
	teamtest.Must(t, team.MarkStopped("bob"))
	second := team.LastStop("bob")
	teamtest.Must(t, team.MarkStopped("bob"))
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
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil))
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
	teamtest.Must(t, os.Remove(path))
	teamtest.Must(t, os.Symlink("/nowhere", path))
	if _, made, err = team.WriteConfig("# two\n"); made || err != nil {
		t.Error(made, err)
	}
	names, err := os.ReadDir(team.Dir().Path())
	teamtest.Must(t, err)
	if len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}
