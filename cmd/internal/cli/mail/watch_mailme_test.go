package mail

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/teamdir/notices"
)

func TestSubscriptions(t *testing.T) {
	s := newScope(t)
	must(t, os.WriteFile(filepath.Join(s.Root.Path, "main", "team.toml"), []byte("[members.me]\nperson = true\n"), 0o600))
	_, err := s.Root.CreateTeam("other")
	must(t, err)
	type want = []notices.Subscription
	for text, wanted := range map[string]want{
		"none":                    nil,
		"idle bob":                {{Event: "idle", Agent: "bob"}},
		" idle   bob ,error *":    {{Event: "idle", Agent: "bob"}, {Event: "error", Agent: "*"}},
		"off all, off *":          {{Event: "off", Agent: "*"}}, // all is *, and twice is once
		"idle bob, idle @bob":     {{Event: "idle", Agent: "bob"}},
		"overdue bob, idle carol": {{Event: "overdue", Agent: "bob"}, {Event: "idle", Agent: "carol"}},
	} {
		got, err := subscriptions(s, text)
		if diff := cmp.Diff(wanted, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for name, text := range map[string]string{
		"no state": "sleepy bob", "one word": "idle", "three words": "idle bob carol", "nothing": "", "an end": "idle bob,",
		"a stranger": "idle zed", "myself": "idle alice", "a person": "idle me", "another team's": "idle bob@other",
	} {
		if got, err := subscriptions(s, text); err == nil {
			t.Errorf("%s: %q is taken: %v", name, text, got)
		}
	}
}
