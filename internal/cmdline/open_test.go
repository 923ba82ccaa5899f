package cmdline

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// A verb that fails open: one line on stderr, nothing on stdout, exit 0,
// whatever was wrong; an exit code on purpose stands.
func TestFailsOpen(t *testing.T) {
	t.Parallel()
	var fails error
	app := &App{Name: "atm", Verbs: []*Verb{{Name: "hook", Args: "TOOL", MinArgs: 1, MaxArgs: 1, FailsOpen: true,
		Run: RunnerFunc(func(context.Context, *Call) error { return fails })}}}
	for _, c := range []struct {
		args  string
		fails error
		exit  int
		says  string
	}{
		{"hook x", nil, 0, ""},
		{"hook x", errors.New("two\nlines"), 0, `atm: two\nlines`},
		{"hook x --json", Refused("no").WithHint("do"), 0, "atm: no"},
		{"hook x", context.Canceled, 0, "atm: context canceled"},
		{"hook x", &Error{Exit: 2, Printed: true}, 2, ""},
		{"hook", nil, 0, "atm: atm hook needs TOOL"},
		{"hook x y", nil, 0, `atm: "y" is one argument too many for atm hook`},
		{"hook x --bogus --json", nil, 0, "atm: unknown flag --bogus for atm hook"},
		{"--bogus hook x", nil, 0, "atm: unknown flag --bogus for atm hook"},
	} {
		var files [2]*os.File
		var read [2]*os.File
		for i := range files {
			var err error
			if read[i], files[i], err = os.Pipe(); err != nil {
				t.Fatal(err)
			}
		}
		fails = c.fails
		app.Stdout, app.Stderr = files[0], files[1]
		exit := app.Run(context.Background(), strings.Fields(c.args))
		files[0].Close()
		files[1].Close()
		out, _ := io.ReadAll(read[0])
		errs, _ := io.ReadAll(read[1])
		read[0].Close()
		read[1].Close()
		if exit != c.exit || len(out) > 0 || strings.TrimSuffix(string(errs), "\n") != c.says || strings.Count(string(errs), "\n") > 1 {
			t.Errorf("%s: exit %d, %q, %q", c.args, exit, out, errs)
		}
	}
}

// Where stdout takes no JSON, an error is said on stderr all the same.
func TestErrorWithoutStdout(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	app := &App{Name: "atm", Stdout: r, Stderr: w, Verbs: []*Verb{{Name: "do",
		Run: RunnerFunc(func(context.Context, *Call) error { return Failed("no") })}}}
	exit := app.Run(context.Background(), []string{"do", "--json"}) // the reading end takes nothing
	w.Close()
	if said, _ := io.ReadAll(r); exit != 1 || string(said) != "atm: no\n" {
		t.Errorf("exit %d, %q", exit, said)
	}
}

// A guess that is no misspelling is answered with what was meant.
func TestGuesses(t *testing.T) {
	t.Parallel()
	do := RunnerFunc(func(context.Context, *Call) error { return nil })
	app := &App{Name: "atm", Verbs: []*Verb{{Name: "ls", Run: do}, {Name: "status", Run: do}, {
		Name: "team", Run: do, Flags: []Flag{{Name: "watch"}}, Guesses: []string{"ps"}, Stray: "atm status",
		Subs: []*Verb{{Name: "add", Run: do}}}}}
	for args, want := range map[string]string{
		"ps": `did you mean "atm team"?`, "team watch": `did you mean "atm team --watch"?`,
		"team status": `did you mean "atm status"?`, "team bob": "atm status bob", "team ad": `did you mean "atm team add"?`,
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		app.Stderr = w
		exit := app.Run(context.Background(), strings.Fields(args))
		w.Close()
		said, _ := io.ReadAll(r)
		r.Close()
		if exit != 2 || !strings.HasSuffix(string(said), "atm: hint: "+want+"\n") {
			t.Errorf("%s: exit %d, %q", args, exit, said)
		}
	}
}
