package config

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

var commentedKey = regexp.MustCompile(`(?m)^# ?((\[+[a-z.]+\]+)|([a-z_]+ = .*))$`)

// A sample has no mistakes: as it is, with any one of its commented keys, and with all of them. It mentions every key.
func TestSample(t *testing.T) {
	t.Parallel()
	for about, s := range map[string]struct{ agents, people []wire.Name }{
		"nobody":     {},
		"one":        {agents: []wire.Name{"bob"}},
		"a person":   {people: []wire.Name{"me"}},
		"all":        {agents: []wire.Name{"alice", "bob", "carol"}, people: []wire.Name{"me", "you"}},
		"odd names":  {agents: []wire.Name{"0", "x", "a_b-c"}},
		"one person": {agents: []wire.Name{"bob"}, people: []wire.Name{"me"}},
	} {
		text := Sample(s.agents, s.people, map[wire.Name][]string{"carol": {"sh", "-c", `echo "a" && <b>`}})
		if wants := about == "all"; strings.Contains(text, `command = ["sh","-c","echo \"a\" && <b>"]`) != wants {
			t.Errorf("%s: the command that carol ran: %v\n%s", about, !wants, text)
		}
		_, mistakes := Parse([]byte(text), nil)
		if len(mistakes) > 0 {
			t.Errorf("%s: %v\n%s", about, mistakes, text)
		}
		full := commentedKey.ReplaceAllString(text, "$1")
		if full == text {
			t.Fatalf("%s: no examples", about)
		}
		if _, mistakes = Parse([]byte(full), nil); len(mistakes) > 0 {
			t.Errorf("%s, all taken in: %v\n%s", about, mistakes, full)
		}
		for _, key := range []string{
			"lead", "approvers", "person", "role", "command", "cwd", "env", "driver", "inject", "restart", "resume", "size", "prompt", "after", "from", "worktree",
			"agent", "tool", "decision", "enabled", "output_capture", "allow_human_input", "auto_exit_on", "resume_cmd",
			"reviewers", "event", "who", "timeout", "tokens", "cost", "host", "nats", "creds", "replicas",
		} {
			line := regexp.MustCompile(`(?m)^` + key + ` = .+ # .+`)
			if about == "all" && !line.MatchString(full) {
				t.Errorf("%s: %s does not stand there with a word about it:\n%s", about, key, full)
			}
		}
		// The keys of members and the top level, one at a time.
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, "#[[rules]]") {
				break // the keys below need their header
			}
			if m := commentedKey.FindStringSubmatch(l); m != nil && (len(s.agents) > 0 || !strings.Contains(text[:strings.Index(text, l)], "#[")) && len(s.agents)+len(s.people) > 0 {
				one := strings.Join(append(append(append([]string{}, lines[:i]...), m[1]), lines[i+1:]...), "\n")
				if _, mistakes := Parse([]byte(one), nil); len(mistakes) > 0 {
					t.Errorf("%s, with %q: %v", about, m[1], mistakes)
				}
			}
		}
	}
}
