//go:build unix

package fakeagent

import "testing"

// A command plays the model: what it prints is said, or acted; one that fails is
// an API that does; and an interrupt ends it.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: name, NoRestore: true, Model: `
				read -r line
				case $line in
				act) echo "CONFIRM [touch made.txt] SAY Made it." ;;
				fail) echo "out of order" >&2; exit 3 ;;
				wait) exec sleep 60 ;;
				*) echo "You said $line." ;;
				esac`})
			r.logged(Ready)
			r.say("hello there")
			r.sees("You said hello there.")
			r.state("idle")
			r.say("act")
			r.state("confirming")
			r.sees("touch made.txt")
			r.keys(looks[name].yes)
			r.sees("Made it.")
			r.state("idle")
			r.say("wait")
			r.state("thinking")
			r.interrupts(name)
			r.say("fail")
			es := r.logs("a model that failed", func(es Entries) bool { return len(es.Of(Modelled)) == 4 })
			if e := es.Of(Modelled)[3]; e.Code != 3 || e.Text != "out of order\n" {
				t.Errorf("%+v", e)
			}
			r.logs("the end of its turn", func(es Entries) bool {
				over := es.Of(TurnOver)
				return len(over) == 4 && over[3].Kind == "failed"
			})
		})
	}
}
