package cmdline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mail returns an App as atm is one; what its verbs were called with goes to
// got.
func mail(got *[]string) *App {
	echo := func(ctx context.Context, c *Call) error {
		*got = append(*got, seen(c))
		return nil
	}
	text := []Flag{
		{Name: "message", Aliases: []string{"m", "body"}, Kind: String, Arg: "TEXT", Usage: "the text"},
		{Name: "attach", Kind: Strings, Arg: "FILE", Usage: "a file beside the text"},
		{Name: "meta", Kind: Pairs, Arg: "K=V", Usage: "a word for programs"},
		{Name: "subject", Kind: String, Arg: "S", Usage: "one line"},
		{Name: "urgent", Usage: "may break into a turn"},
		{Name: "ack", Usage: "I need to know that you have it"},
		{Name: "fyi", Usage: "no answer wanted"},
		{Name: "expires", Kind: Duration, Arg: "D", Usage: "not to be acted on later"},
	}
	return &App{
		Name: "atm", Version: "1.2.3", Help: "atm carries mail\n",
		Flags: []Flag{
			{Name: "root", Kind: String, Arg: "DIR", Usage: "the root"},
			{Name: "team", Kind: String, Arg: "NAME", Usage: "the team"},
			{Name: "as", Kind: String, Arg: "NAME", Usage: "who you are"},
			{Name: "lock-timeout", Kind: Duration, Arg: "D", Default: "5s", Usage: "patience with locks"},
		},
		Verbs: []*Verb{
			{Name: "send", Aliases: []string{"msg"}, Args: "TO[,TO…] [TEXT…]", MinArgs: 1, MaxArgs: -1, Flags: text, Run: RunnerFunc(echo),
				Summary: "delivers", Examples: []string{`atm send bob "The parser is done."`}, Notes: []string{"Exit 4: sent, not answered."}},
			{Name: "read", Args: "[ID…]", MaxArgs: -1, Run: RunnerFunc(echo), Summary: "shows new mail", Examples: []string{"atm read"}, Flags: []Flag{
				{Name: "limit", Aliases: []string{"n"}, Kind: Int, Arg: "N", Default: "20", Usage: "at most"},
				{Name: "peek", Usage: "marks nothing"},
				{Name: "wait", Usage: "until there is some"},
				{Name: "timeout", Kind: Duration, Arg: "D", Default: "90s", Usage: "how long"},
			}},
			{Name: "ls", Aliases: []string{"list", "inbox"}, Args: "[AGENT]", MaxArgs: 1, Run: RunnerFunc(echo), Summary: "a line each", Examples: []string{"atm ls"}},
			{Name: "where", Run: RunnerFunc(echo), Summary: "where you are", Examples: []string{"atm where"}},
			{Name: "team", Run: RunnerFunc(echo), Summary: "the members", Examples: []string{"atm team"},
				Flags: []Flag{{Name: "watch", Usage: "repaints"}},
				Subs: []*Verb{
					{Name: "ls", Run: RunnerFunc(echo), Summary: "all teams", Examples: []string{"atm team ls"}},
					{Name: "add", Args: "NAME…", MinArgs: 1, MaxArgs: -1, Run: RunnerFunc(echo), Summary: "new members", Examples: []string{"atm team add carol"},
						Flags: []Flag{{Name: "kind", Kind: String, Arg: "K", Usage: "person, agent"}}},
				}},
			{Name: "session", Summary: "sessions", Examples: []string{"atm session ls"}, Subs: []*Verb{
				{Name: "new", Run: RunnerFunc(echo), Summary: "a new one", Examples: []string{"atm session new"}},
				{Name: "ls", Run: RunnerFunc(echo), Summary: "all", Examples: []string{"atm session ls"}},
			}},
			{Name: "run", Args: "NAME [--] [CMD…]", MinArgs: 1, MaxArgs: -1, StopAfter: 1, Run: RunnerFunc(echo),
				Summary: "runs a command", Examples: []string{"atm run alice -- claude"},
				Flags: []Flag{{Name: "detach", Usage: "in the background"}, {Name: "size", Kind: String, Arg: "WxH", Usage: "of the screen"}}},
		},
	}
}

// seen writes a call as one line.
func seen(c *Call) string {
	s := fmt.Sprintf("%s %q", c.Path, c.Args)
	for _, flags := range [][]Flag{c.Verb.Flags, c.app.Flags, builtinFlags[:]} {
		for _, f := range flags {
			if !c.Given(f.Name) {
				continue
			}
			s += " " + f.Name + "="
			switch f.Kind {
			case Bool:
				s += fmt.Sprint(c.Bool(f.Name))
			case String:
				s += c.String(f.Name)
			case Strings:
				s += fmt.Sprintf("%q", c.Strings(f.Name))
			case Int:
				s += fmt.Sprint(c.Int(f.Name))
			case Duration:
				s += fmt.Sprint(c.Duration(f.Name))
			case Pairs:
				s += fmt.Sprintf("%q", c.Pairs(f.Name))
			}
		}
	}
	return s
}

// result is what a caller of the program sees.
type result struct {
	exit     int
	out, err string
}

func (r result) String() string {
	return fmt.Sprintf("exit %d, stdout %q, stderr %q", r.exit, r.out, r.err)
}

// run calls the App with its output going to files.
func run(t testing.TB, ctx context.Context, a *App, args ...string) result {
	t.Helper()
	dir := t.TempDir()
	a.Stdout, a.Stderr = create(t, dir, "out"), create(t, dir, "err")
	defer a.Stdout.Close()
	defer a.Stderr.Close()
	exit := a.Run(ctx, args)
	return result{exit, content(t, a.Stdout), content(t, a.Stderr)}
}

func create(t testing.TB, dir, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func content(t testing.TB, f *os.File) string {
	t.Helper()
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// one returns an App whose only verb, `atm do`, is run.
func one(run func(ctx context.Context, c *Call) error) *App {
	return &App{Name: "atm", Verbs: []*Verb{{Name: "do", Args: "[TEXT…]", MaxArgs: -1, Run: RunnerFunc(run)}}}
}

func fails(err error) *App {
	return one(func(context.Context, *Call) error { return err })
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want result
		json string
	}{
		{"done", nil, result{0, "", ""}, ""},
		{"plain", errors.New("disk full"), result{1, "", "atm: disk full\n"}, `{"error":{"code":"failed","message":"disk full"}}`},
		{"hint", NotFound("no agent %q", "bbo").WithHint("did you mean %q?", "bob").WithCandidates("bob"),
			result{3, "", "atm: no agent \"bbo\"\natm: hint: did you mean \"bob\"?\n"},
			`{"error":{"code":"not_found","message":"no agent \"bbo\"","hint":"did you mean \"bob\"?","candidates":["bob"]}}`},
		{"candidates are the hint", Ambiguous("9f could be several").WithCandidates("9f3a1c", "9f77b0"),
			result{2, "", "atm: 9f could be several\natm: hint: one of 9f3a1c, 9f77b0\n"},
			`{"error":{"code":"ambiguous","message":"9f could be several","hint":"one of 9f3a1c, 9f77b0","candidates":["9f3a1c","9f77b0"]}}`},
		{"usage without a hint", Usage("no"), result{2, "", "atm: no\natm: hint: atm do --help\n"},
			`{"error":{"code":"usage","message":"no","hint":"atm do --help"}}`},
		{"extra", &Error{Code: "timeout", Exit: ExitTimeout, Message: "no mail <yet>", Extra: map[string]any{"timeout": true}},
			result{4, "", "atm: no mail <yet>\n"}, `{"error":{"code":"timeout","message":"no mail <yet>"},"timeout":true}`},
		{"extra that is no JSON", &Error{Code: "failed", Exit: 1, Message: "m", Extra: map[string]any{"f": func() {}}},
			result{1, "", "atm: m\n"}, `{"error":{"code":"failed","message":"m"}}`},
		{"wrapped", fmt.Errorf("sending: %w", Locked("root is locked").WithHint("atm doctor")),
			result{5, "", "atm: sending: root is locked\natm: hint: atm doctor\n"},
			`{"error":{"code":"locked","message":"sending: root is locked","hint":"atm doctor"}}`},
		{"printed", &Error{Exit: 77, Printed: true}, result{77, "", ""}, ""},
		{"exit forgotten", &Error{Message: "m"}, result{1, "", "atm: m\n"}, `{"error":{"code":"failed","message":"m"}}`},
		{"partial", Partial("not to carol"), result{6, "", "atm: not to carol\n"}, `{"error":{"code":"partial","message":"not to carol"}}`},
		{"refused", Refused("not yours"), result{5, "", "atm: not yours\n"}, `{"error":{"code":"refused","message":"not yours"}}`},
		{"timeout", Timeout("in vain"), result{4, "", "atm: in vain\n"}, `{"error":{"code":"timeout","message":"in vain"}}`},
		{"terminal control", Failed("bad \x1b[2J\x07\u009b\u202e\u2066\u2028\x7f\nline \xff \\ é").WithHint("\x1b]0;x"),
			result{1, "", `atm: bad \x1b[2J\x07\u009b\u202e\u2066\u2028\x7f\nline \xff \ é` + "\natm: hint: \\x1b]0;x\n"},
			`{"error":{"code":"failed","message":"bad \u001b[2J\u0007\u009b\u202e\u2066\u2028\u007f\nline \ufffd \\ é","hint":"\u001b]0;x"}}`},
		{"canceled, but not by a signal", context.Canceled, result{1, "", "atm: context canceled\n"}, `{"error":{"code":"failed","message":"context canceled"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := run(t, t.Context(), fails(test.err), "do"); got != test.want {
				t.Errorf("got  %v\nwant %v", got, test.want)
			}
			want := result{exit: test.want.exit}
			if test.json != "" {
				want.out = test.json + "\n"
			}
			if got := run(t, t.Context(), fails(test.err), "do", "--json"); got != want {
				t.Errorf("with --json:\ngot  %v\nwant %v", got, want)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{context.Canceled, fmt.Errorf("waiting: %w", context.Canceled), Failed("waiting for %s: %w", "bob", context.Canceled)} {
		if got := run(t, ctx, fails(err), "do"); got != (result{exit: 130}) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := run(t, ctx, fails(errors.New("disk full")), "do"); got.exit != 1 {
		t.Errorf("another error after an interrupt: %v", got)
	}
}

// A reader that went away is no error to speak of; a socket that did is.
func TestReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	a := one(func(ctx context.Context, c *Call) error {
		_, err := c.Stdout.WriteString("x")
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed pipe: %v", err)
		}
		return fmt.Errorf("listing: %w", err)
	})
	a.Stdout, a.Stderr = w, create(t, t.TempDir(), "err")
	defer a.Stderr.Close()
	if exit := a.Run(t.Context(), []string{"do"}); exit != 1 || content(t, a.Stderr) != "" {
		t.Errorf("exit %d, stderr %q", exit, content(t, a.Stderr))
	}
	other := &os.PathError{Op: "write", Path: "runner.sock", Err: syscall.EPIPE}
	if got := run(t, t.Context(), fails(other), "do"); got.err == "" {
		t.Error("a broken socket went unsaid")
	}
}

func TestWarn(t *testing.T) {
	a := one(func(ctx context.Context, c *Call) error { c.Warn("odd file %s", "a\x1bb"); return nil })
	if got := run(t, t.Context(), a, "do"); got.err != "atm: odd file a\\x1bb\n" {
		t.Errorf("%q", got.err)
	}
	if got := run(t, t.Context(), a, "do", "--quiet"); got.err != "" {
		t.Errorf("with --quiet: %q", got.err)
	}
}

func TestFlagMistakeInAVerb(t *testing.T) {
	for name, use := range map[string]func(c *Call){
		"unknown":    func(c *Call) { c.Bool("nothing") },
		"wrong kind": func(c *Call) { c.Int("json") },
		"given":      func(c *Call) { c.Given("nothing") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			run(t, t.Context(), one(func(ctx context.Context, c *Call) error { use(c); return nil }), "do")
		})
	}
}

func TestNotBoth(t *testing.T) {
	a := mail(new([]string))
	a.Verbs[0].Run = RunnerFunc(func(ctx context.Context, c *Call) error { return c.NotBoth("ack", "fyi", "m") })
	for args, exit := range map[string]int{"": 0, "--ack": 0, "--ack --fyi": 2, "--ack=false --fyi": 0, "--fyi -m x": 2} {
		got := run(t, t.Context(), a, append([]string{"send", "bob"}, strings.Fields(args)...)...)
		if got.exit != exit {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestDefaults(t *testing.T) {
	a := mail(new([]string))
	a.Verbs[1].Run = RunnerFunc(func(ctx context.Context, c *Call) error {
		if c.Int("n") != 20 || c.Duration("timeout") != 90*time.Second || c.Duration("lock-timeout") != 5*time.Second ||
			c.Bool("peek") || c.String("as") != "" || c.Given("limit") || c.Has("subject") || !c.Has("limit") || c.JSON() || c.Quiet() {
			t.Error("wrong default")
		}
		return nil
	})
	run(t, t.Context(), a, "read")
}

// lines counts the lines of s, which ends with a newline or is empty.
func lines(s string) int { return bytes.Count([]byte(s), []byte("\n")) }
