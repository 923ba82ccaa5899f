package cmdline

import (
	stdcmp "cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

func testApp() *cli.App {
	app := &cli.App{
		Name: "atm", HelpName: "atm", Metadata: map[string]any{}, HideHelp: true, DisableSliceFlagSeparator: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "as", Usage: "`NAME`"}, &cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "help"},
			VersionFlag,
		},
		Commands: []*cli.Command{
			{Name: "send", Category: "msg\nbroadcast    atm send all \"…\"\n--to --cc    atm send NAME,VALUE \"…\"", UsageText: "atm send bob hi", Args: true, ArgsUsage: "TO [TEXT…]", Flags: []cli.Flag{
				&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "`TEXT`"}, &cli.BoolFlag{Name: "urgent", Aliases: []string{"u"}, Category: "important"},
				ListFlag("attach", "", "a"), &cli.BoolFlag{Name: "wait-reply"}, TimeoutFlag(),
			}},
			{Name: "ls", Category: "list", UsageText: "atm ls", ArgsUsage: "[AGENT]", Flags: []cli.Flag{
				&cli.BoolFlag{Name: "done"}, &cli.BoolFlag{Name: "all", Aliases: []string{"a"}}, &cli.BoolFlag{Name: "l"},
				CountFlag("limit", 20, "`N`", "all", "n"),
			}},
			{Name: "read", ArgsUsage: "[ID]", Flags: []cli.Flag{&cli.BoolFlag{Name: "wait"}, TimeoutFlag()}},
			{Name: "reply", ArgsUsage: "ID [TEXT…]", UsageText: "atm reply 9f3a1c"},
			{Name: "run", ArgsUsage: "NAME [CMD…]", UsageText: "atm run bob -- claude", Flags: []cli.Flag{&cli.BoolFlag{Name: "detach"}}},
			{Name: "stop", Category: "! kill", UsageText: "atm stop bob", ArgsUsage: "NAME"},
			{Name: "team", Flags: []cli.Flag{&cli.BoolFlag{Name: "watch"}}, Subcommands: []*cli.Command{
				{Name: "add", Category: "invite", UsageText: "atm team add carol", ArgsUsage: "NAME…", Flags: []cli.Flag{&cli.BoolFlag{Name: "shared"}}},
			}},
		},
	}
	app.Setup()
	app.Command("team").Command("add").HelpName = "atm team add"
	return app
}

// Flags mean the same wherever they stand before "--".
func TestSort(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"send bob hi", "send -- bob hi"},
		{"--json send bob hi --as alice", "--json --as alice send -- bob hi"},
		{"--as send send bob", "--as send send -- bob"},
		{"send bob -m=hi", "send -m=hi -- bob"},
		{"send bob -message hi", "send -message hi -- bob"},
		{"send bob -- --urgent", "send -- bob --urgent"},
		{"send bob -", "send -- bob -"},
		{"send bob -=-=-", "send -- bob -=-=-"},
		{"send bob -m -x", "send -m -x -- bob"},
		{"send bob q --wait-reply 30s", "send --wait-reply --timeout 30s -- bob q"},
		{"send bob q --wait-reply=30s", "send --wait-reply --timeout 30s -- bob q"},
		{"send bob --wait-reply hello", "send --wait-reply -- bob hello"},
		{"send bob --urgent no more", "send --urgent -- bob no more"},
		{"send bob hi --urgent=false", "send --urgent=false -- bob hi"},
		{"ls -n 5 bob -a", "ls -n 5 -a -- bob"},
		{"run bob --detach bash --login -x", "run --detach -- bob bash --login -x"},
		{"run bob --detach -- bash --detach", "run --detach -- bob bash --detach"},
		{"run bob npm -- --port 80", "run -- bob npm -- --port 80"},
		{"run bob -- npm test -- -v", "run -- bob npm test -- -v"},
		{"team --watch", "team --watch --"},
		{"team add --shared jobs --json", "--json team add --shared -- jobs"},
		{"--json sned -x", "--json -- sned"},
		{"read --wait 123456", "read --wait -- 123456"},
		{"read --wait 12345d", "read --wait -- 12345d"},
		{"read --wait 30d", "read --wait --timeout 30d --"},
		{"--version", "--version --"},
		{"", "--"},
	} {
		l, err := Sort(testApp(), strings.Fields(tt.line))
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
		} else if diff := cmp.Diff(tt.want, strings.Join(l.Args(), " ")); diff != "" {
			t.Errorf("%s: %s", tt.line, diff)
		}
	}
}

// What is wrong is refused with a hint, before a command does anything.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ line, want, hint string }{
		{"send bob hi --urgnet", "unknown flag --urgnet for atm send", "did you mean --urgent?"},
		{"send bob hi -s x", "unknown flag -s", "atm send TO [TEXT…] takes"},
		{"send bob hi --here", "unknown flag --here", "atm send TO"},
		{"send bob hi --version", "unknown flag --version", "atm send TO"},
		{"ls --agent bob", "unknown flag --agent", "atm ls [AGENT] takes"},
		{"ls --foo=text", "unknown flag --foo", "atm ls [AGENT] takes --done --all --l --limit N"},
		{"--jsn", "unknown flag --jsn for atm", "did you mean --json?"},
		{"send bob hi --urgent true", `--urgent takes no value: what is "true"?`, "leave it out"},
		{"send bob hi --as alice there", `is "there" a part of the text, or does it belong to --as?`, "in front of the flags"},
		{"send bob hi --urgent there", `is "there" a part of the text, or does it belong to --urgent?`, "quote the text"},
		{"send bob hi --important", "unknown flag --important", "did you mean --urgent?"},
		{"send bob hi --to carol", "unknown flag --to", `atm send bob,carol hi`},
		{"--urgent send bob hi", "unknown flag --urgent for atm", "atm takes"},
		{"ls -la", "unknown flag -la", "atm ls [AGENT] takes"},
		{"send --urgent false bob hi", `--urgent takes no value: what is "false"?`, "leave it out"},
		{"send bob hi --urgent=maybe", `invalid value "maybe" for --urgent: neither true nor false`, ""},
		{"send bob -m", "-m needs a value", "--message TEXT"},
		{"send bob -m --urgent", "-m needs a value", ""},
		{"send bob -m one -m two", `--message is given twice: the second is "two"`, "leave one out"},
		{"send bob -m one --message two", "given twice", ""},
		{"ls -n 1 --limit 2", "--limit is given twice", ""},
		{"--as= ls", "--as needs a value", ""},
		{"ls --limit many", `invalid value "many" for --limit: not a number`, "--limit N: N"},
		{"ls --limit -1", "--limit -1: must not be negative", ""},
		{"read --timeout 5s", "--timeout does nothing without --wait", "add --wait"},
		{"send bob hi --timeout 5s", "--timeout does nothing without --wait-reply", "leave --timeout out"},
		{"read --wait 3s --timeout 1s", `--timeout is given twice: the second is "1s"`, "leave one out"},
		{"ls bob carol", `unexpected argument "carol"`, ""},
		{"ls bob done", `unexpected argument "done"`, "one at a time: atm ls [AGENT]"},
		{"reply", "atm reply needs ID [TEXT…]", "atm reply 9f3a1c"},
		{"run", "atm run needs NAME", "atm run bob -- claude"},
		{"team 30", `unknown command "team 30"`, "atm team add"},
		{"team send bob hi", `unknown command "team send"`, "atm team add"},
		{"team ad jobs", `unknown command "team ad"`, "atm team add"},
		{"team invite dora", `unknown command "team invite"`, "atm team add dora"},
	} {
		app := testApp()
		app.HideVersion, app.ExitErrHandler = true, func(*cli.Context, error) {}
		for _, c := range slices.Concat(app.Commands, app.Command("team").Subcommands) {
			c.HideHelp = true
			if c.Action == nil {
				c.Action = func(c *cli.Context) error { return stdcmp.Or(CheckWords(c), CheckTimeout(c)) }
			}
		}
		l, err := Sort(app, strings.Fields(tt.line))
		if err == nil {
			err = app.Run(append([]string{"atm"}, l.Args()...))
		}
		var e *failure.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if e.Exit != failure.ExitUsage || !strings.Contains(e.Message, tt.want) || !strings.Contains(e.Hint.String(), tt.hint) {
			t.Errorf("%s: %s (hint: %s)", tt.line, e.Message, e.Hint)
		}
	}
}

// An unknown command is answered by the help's words, else by the name of which it is one slip away, if that ends nothing.
func TestUnknownCommand(t *testing.T) {
	const all = "commands: send ls read reply run stop team; atm help says what they do"
	for name, want := range map[string]string{
		"frobnicate": all, "sned": `did you mean "atm send"?`, "lst": `did you mean "atm ls"?`, "stpo": all, "top": all, "sent-mail": all,
		"msg": "atm send bob hi", "Broadcast": `atm send all "…"`, "invite": "atm team add carol", "kill": "atm stop NAME",
	} {
		if e := UnknownCommand(testApp(), name); e.Hint.String() != want {
			t.Errorf("%s: %s", name, e.Hint)
		}
	}
}

// A flag that may be given several times keeps commas; one that a command does not have has no values.
func TestList(t *testing.T) {
	app := testApp()
	app.HideVersion, app.ExitErrHandler = true, func(*cli.Context, error) {}
	app.Command("send").Action = func(c *cli.Context) error {
		if got := List(c, "attach"); !slices.Equal(got, []string{"a", "b,c"}) || List(c, "idle") != nil {
			t.Errorf("%q", got)
		}
		return nil
	}
	l, err := Sort(app, strings.Fields("send bob hi --attach a --attach b,c"))
	if err = errors.Join(err, app.Run(append([]string{"atm"}, l.Args()...))); err != nil {
		t.Error(err)
	}
}

func TestParseDuration(t *testing.T) {
	for word, want := range map[string]string{"30s": "30s", "7d": "168h0m0s", "1d12h": "36h0m0s", "0": "0s", "1w": "168h0m0s", "1w1d1h": "193h0m0s", "30min": "30m0s", "2 hours": "2h0m0s", "1 day 3 hours": "27h0m0s"} {
		if d, err := ParseDuration(word); err != nil || d.String() != want {
			t.Errorf("%s: %v, %v", word, d, err)
		}
	}
	for _, word := range []string{"", "5", "-1s", "+1s", "d", "1x", "2m3d", "1.5d", "w", "1d1w", "99999w", "9999999999d"} {
		if d, err := ParseDuration(word); err == nil {
			t.Errorf("%s: %v", word, d)
		}
	}
}
