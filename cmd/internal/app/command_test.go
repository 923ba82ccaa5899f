package app

import "testing"

// A command to type gets what was given behind its flags, and not into a text.
func TestCommand(t *testing.T) {
	g := &Given{Root: "a b", Team: "main", As: "me"}
	for command, want := range map[string]string{
		"atm ls --all":                   "atm ls --all --root 'a b' --team main --as me",
		"atm run bob -- claude -- x":     "atm run bob --root 'a b' --team main --as me -- claude -- x",
		`atm send bob 'this -- or that'`: `atm send bob 'this -- or that' --root 'a b' --team main --as me`,
		`atm send bob "it's" -- -x`:      `atm send bob "it's" --root 'a b' --team main --as me -- -x`,
		"atm team add bob --team other":  "atm team add bob --team other --root 'a b' --as me",
		"atm":                            "atm --root 'a b' --team main --as me",
		"rm -r x -- y":                   "rm -r x -- y",
	} {
		if got := g.Command(command); got != want {
			t.Errorf("%s: %s", command, got)
		}
	}
	if got := g.Commands("atm doctor --fix 'a; b.json'; mv x 'y; z'"); got != "atm doctor --fix 'a; b.json' --root 'a b' --team main --as me; mv x 'y; z'" {
		t.Error(got)
	}
}
