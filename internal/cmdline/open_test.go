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
