package policy

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// Who may do what to bob, all pairs: SECURITY.md has this table in words. Each column is an actor; "agent" is one whose
// process an agent's program started, whatever it says.
const rights = `
                                owner person lead lead-agent bob bob-agent alice alice-agent person-agent nobody-agent other-host
abort                           yes   yes    yes  yes        yes yes       -     -           -            -            -
add                             yes   yes    yes  yes        yes yes       yes   -           -            -            -
answer                          yes   yes    yes  yes        -   -         -     -           -            -            -
bridge the team to other machines yes yes    yes  -          yes -         yes   -           -            -            -
complete                        yes   yes    yes  yes        yes yes       -     -           -            -            -
end a claim of                  yes   yes    yes  yes        yes yes       -     -           -            -            -
interrupt                       yes   yes    yes  yes        yes yes       -     -           -            -            -
link the team to another root   yes   yes    yes  -          yes -         yes   -           -            -            -
pause                           yes   yes    yes  yes        yes yes       -     -           -            -            -
restart                         yes   yes    yes  yes        yes yes       -     -           -            -            -
restore                         yes   yes    yes  yes        yes yes       -     -           -            -            -
resume                          yes   yes    yes  yes        yes yes       -     -           -            -            -
retire                          yes   yes    yes  yes        yes yes       -     -           -            -            -
retry                           yes   yes    yes  yes        yes yes       yes   -           -            -            -
run                             yes   yes    yes  yes        yes yes       -     -           -            -            -
send a session's message to     yes   yes    yes  yes        yes yes       -     -           -            -            -
start a session with            yes   yes    yes  yes        yes yes       yes   -           -            -            -
start                           yes   yes    yes  yes        yes yes       -     -           -            -            -
stop                            yes   yes    yes  yes        yes yes       -     -           -            -            -
sync mail for                   yes   yes    yes  yes        yes -         yes   -           -            -            -
type into                       yes   yes    yes  yes        -   -         -     -           -            -            -
`

func TestRights(t *testing.T) {
	t.Parallel()
	p := Policy{Lead: "lead", People: []wire.Name{"person"}}
	lines := strings.Split(strings.TrimSpace(rights), "\n")
	actors, rows := strings.Fields(lines[0]), map[Act][]string{}
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		at := len(words) - len(actors)
		rows[Act(strings.Join(words[:at], " "))] = words[at:]
	}
	if got, want := slices.Sorted(maps.Keys(Rights)), slices.Sorted(maps.Keys(rows)); !slices.Equal(got, want) {
		t.Errorf("acts %q, in the table %q", got, want)
	}
	for act, row := range rows {
		for i, actor := range actors {
			name, isAgent := strings.CutSuffix(actor, "-agent")
			switch name {
			case "owner", "nobody":
				name = ""
			case "other-host":
				name = "person@laptop"
			}
			err := p.Check(act, "bob", Actor{Name: wire.Name(name), IsAgent: isAgent})
			if may := row[i] == "yes"; may != (err == nil) {
				t.Errorf("%s, %s: %v", act, actor, err)
			}
			if err != nil && (act == Answer) != errors.Is(err, ErrNotYours) {
				t.Errorf("%s, %s: %v", act, actor, err)
			}
		}
	}
}

// Approvers in team.toml say who may answer, in place of people and the lead; also of other hosts. Nobody outside of the
// list may, and no agent but the lead. A partial policy, or one without a lead, lets no agent act.
func TestApprovers(t *testing.T) {
	t.Parallel()
	person, agent := func(n wire.Name) Actor { return Actor{Name: n} }, func(n wire.Name) Actor { return Actor{Name: n, IsAgent: true} }
	with := func(names ...wire.Name) Policy {
		return Policy{Lead: "alice", People: []wire.Name{"me", "you"}, Approvers: names}
	}
	partial := with("me", "alice")
	partial.Approvers, partial.IsPartial = nil, true
	for _, c := range []struct {
		p    Policy
		by   Actor
		want bool
	}{
		{with("me"), person("me"), true},
		{with("me"), person("you"), false},
		{with("me"), Actor{}, false},
		{with("me"), agent("alice"), false},
		{with("me"), agent("me"), false},
		{with("alice"), agent("alice"), true},
		{with("alice"), person("me"), false},
		{with("carol"), agent("carol"), false},
		{Policy{Approvers: []wire.Name{}, People: []wire.Name{"me"}}, person("me"), false},
		{Policy{Approvers: []wire.Name{}}, Actor{}, false},
		{with("me"), person("me@laptop"), false},
		{with("me@laptop"), person("me@laptop"), true},
		{with("me@laptop"), agent("me@laptop"), false},
		{with("me@laptop"), person("me@cloud"), false},
		{Policy{People: []wire.Name{"me"}}, agent("alice"), false},
		{partial, agent("alice"), false},
		{partial, person("me"), true},
	} {
		if err := c.p.Check(Answer, "bob", c.by); (err == nil) != c.want {
			t.Errorf("%+v: %+v: %v", c.p, c.by, err)
		}
	}
	if partial.Check(Stop, "bob", agent("alice")) == nil || partial.Check(Stop, "alice", agent("alice")) != nil {
		t.Error("an agent acts on others by half a policy, or not on itself")
	}
}
