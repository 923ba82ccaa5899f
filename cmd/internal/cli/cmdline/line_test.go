package cmdline

import (
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
		Name: "atm", HelpName: "atm", Metadata: map[string]any{},
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "as", Usage: "`NAME`"}, &cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "help"},
		},
		Commands: []*cli.Command{
			{Name: "send", Aliases: []string{"msg"}, Args: true, ArgsUsage: "TO [TEXT…]", Flags: []cli.Flag{
				&cli.StringFlag{Name: "message", Usage: "`TEXT`"}, &cli.BoolFlag{Name: "urgent"},
				ListFlag("attach", ""), &cli.BoolFlag{Name: "wait-reply"}, TimeoutFlag(),
			}},
			{Name: "ls", Aliases: []string{"list"}, ArgsUsage: "[AGENT]", Flags: []cli.Flag{
				&cli.BoolFlag{Name: "sent"}, &cli.BoolFlag{Name: "all"}, &cli.BoolFlag{Name: "l"}, &cli.IntFlag{Name: "limit"},
			}},
			{Name: "reply", ArgsUsage: "ID [TEXT…]", Flags: []cli.Flag{&cli.StringFlag{Name: "id"}}},
			{Name: "wait", ArgsUsage: "[AGENT…] [STATE] [D]", Flags: []cli.Flag{ListFlag("idle", ""), TimeoutFlag()}},
			{Name: "status", ArgsUsage: "[AGENT]"}, {Name: "up", ArgsUsage: "[NAME…]"},
			{Name: "run", ArgsUsage: "NAME [CMD…]", UsageText: "atm run bob -- claude", Flags: []cli.Flag{&cli.BoolFlag{Name: "detach"}}},
			{Name: "team", Flags: []cli.Flag{&cli.BoolFlag{Name: "watch"}}, Subcommands: []*cli.Command{
				{Name: "add", ArgsUsage: "NAME…", Flags: []cli.Flag{&cli.BoolFlag{Name: "shared"}}},
			}},
		},
	}
	for _, c := range app.Commands {
		c.HelpName = "atm " + c.Name
		for _, sub := range c.Subcommands {
			sub.HelpName = c.HelpName + " " + sub.Name
		}
	}
	return app
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"send bob hi", "send -- bob hi"},
		{"msg bob hi", "send -- bob hi"},
		{"send bob hi --urgent there", "send --urgent=true -- bob hi there"},
		{"--urgent send bob hi --as alice", "--as=alice send --urgent=true -- bob hi"},
		{"--as send send bob", "--as=send send -- bob"},
		{"-m hi send bob", "send --message=hi -- bob"},
		{"--limit ls 3", "ls --limit=3 --"},
		{"send bob -m=hi", "send --message=hi -- bob"},
		{"send bob -message hi", "send --message=hi -- bob"},
		{"send bob -- --urgent", "send -- bob --urgent"},
		{"send bob -", "send -- bob -"},
		{"send bob -=-=-", "send -- bob -=-=-"},
		{"send bob -m -x", "send --message=-x -- bob"},
		{"send bob hi --attach a --attach b,c", "send --attach=a --attach=b,c -- bob hi"},
		{"send bob q --wait-reply 30s", "send --timeout=30s --wait-reply=true -- bob q"},
		{"send bob q --wait-reply=30s", "send --timeout=30s --wait-reply=true -- bob q"},
		{"send bob --wait-reply hello", "send --wait-reply=true -- bob hello"},
		{"send bob --urgent no more", "send --urgent=true -- bob no more"},
		{"send bob hi --urgent=false", "send --urgent=false -- bob hi"},
		{"wait 1d", "wait -- 1d"},
		{"wait --idle bob 5s", "wait --idle=bob -- 5s"},
		{"ls -la -n 5", "ls --l=true --all=true --limit=5 --"},
		{"ls -aln 5 bob", "ls --all=true --l=true --limit=5 -- bob"},
		{"run bob --detach bash --login -x", "run --detach=true -- bob bash --login -x"},
		{"run bob --detach -- bash --detach", "run --detach=true -- bob bash --detach"},
		{"team --watch", "team --watch=true --"},
		{"team add --shared jobs --json", "--json=true team add --shared=true -- jobs"},
		{"ls --agent bob", "ls -- bob"},
		{"ls -n5", "ls --limit=5 --"},
		{"run --name bob bash -x", "run -- bob bash -x"},
		{"team add --names a,b", "team add -- a,b"},
		{"wait bob --idle", "wait -- bob idle"},
		{"wait --for 5s", "wait -- 5s"},
		{"reply --id 9f3a1c --format json yes", "--json=true reply -- 9f3a1c yes"},
		{"list agents", "team --"},
		{"list-agents", "team --"},
		{"mail ls bob", "ls -- bob"},
		{"send_message bob hi", "send -- bob hi"},
		{"team-add jobs", "team add -- jobs"},
		{"mail-ls bob", "ls -- bob"},
		{"sent -n 3", "ls --sent=true --limit=3 --"},
		{"list-messages", "ls --"},
		{"list_messages -n5 --agent bob --json", "--json=true ls --limit=5 -- bob"},
		{"agent show bob", "status -- bob"},
		{"start bob", "up -- bob"},
		{"unread --limit 3 --json", "--json=true ls --limit=3 --"},
		{"mail bob hi", "send -- bob hi"},
		{"ls --pending -y bob", "ls -- bob"},
		{"send bob hi --body there", "send --message=there -- bob hi"},
		{"send --user bob --content hi", "send --message=hi -- bob"},
	} {
		l, err := Parse(testApp(), strings.Fields(tt.line))
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		verb := strings.TrimPrefix(l.Command.HelpName, "atm ")
		got := slices.Concat(l.Global, []string{verb}, l.flags, []string{"--"}, l.Words)
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", tt.line, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ line, want, hint string }{
		{"send bob hi --urgnet", "unknown flag --urgnet", "did you mean --urgent?"},
		{"send bob hi -s x", "unknown flag -s", "atm send TO [TEXT…] takes"},
		{"send bob hi --from carol", "unknown flag --from", "--as NAME says who you are"},
		{"send bob hi --dry-run", "unknown flag --dry-run", "atm send has no dry run"},
		{"ls --agent", "unknown flag --agent", ""},
		{"ls --foo=text", "unknown flag --foo", ""},
		{"ls --foo", "unknown flag --foo", "atm ls [AGENT] takes --sent --all --l --limit"},
		{"send bob hi --urgent true", `--urgent takes no value: what is "true"?`, "leave it out"},
		{"--urgent false send bob hi", `--urgent takes no value: what is "false"?`, "leave it out"},
		{"send bob hi --urgent false --as me", `--urgent takes no value: what is "false"?`, "leave it out"},
		{"send bob hi --urgent=maybe", `invalid boolean value "maybe" for --urgent`, ""},
		{"send bob q --wait-reply 30", `invalid value "30" for --timeout: needs a unit: 30s, 30m, 30h or 30d`, ""},
		{"send bob -m", "-m needs a value", ""},
		{"reply --id", "--id needs a value", ""},
		{"team --watch 30", `unknown command "team 30"`, ""},
		{"send bob -m --urgent", "needs a value", ""},
		{"ls --limit many", `invalid value "many" for --limit`, ""},
		{"wait --idle bob --timeout 5", "needs a unit: 5s", ""},
		{"ls bob carol", `unexpected argument "carol"`, ""},
		{"run", "atm run needs NAME", "atm run bob -- claude"},
		{"run --as bob -- bash -x", "atm run needs NAME before --", "atm run bob -- claude"},
		{"team create jobs", `unknown command "team create"`, "another team: atm init --team"},
		{"team send bob hi", `unknown command "team send"`, "atm status NAME"},
		{"team ad jobs", `unknown command "team ad"`, `"atm team add"`},
		{"team frobnicate", `unknown command "team frobnicate"`, "atm team ls|add"},
	} {
		l, err := Parse(testApp(), strings.Fields(tt.line))
		if err == nil {
			_, err = l.Context()
		}
		var e *failure.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if e.Exit != failure.ExitUsage || !strings.Contains(e.Message, tt.want) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s: %s (hint: %s)", tt.line, e.Message, e.Hint)
		}
	}
	if l, err := Parse(testApp(), []string{"--json", "sned", "-x"}); l.Unknown != 1 || !slices.Contains(l.Global, "--json=true") {
		t.Errorf("%+v, %v", l, err)
	}
}

// A flag that may be given several times keeps commas; one that a verb does not have has no values.
func TestList(t *testing.T) {
	l, err := Parse(testApp(), strings.Fields("send bob hi --attach a --attach b,c"))
	c, errContext := l.Context()
	if err != nil || errContext != nil {
		t.Fatal(err, errContext)
	}
	if got := List(c, "attach"); !slices.Equal(got, []string{"a", "b,c"}) || List(c, "idle") != nil {
		t.Errorf("%q", got)
	}
}

func TestParseDuration(t *testing.T) {
	for word, want := range map[string]string{"30s": "30s", "7d": "168h0m0s", "1d12h": "36h0m0s", "0": "0s", "1w": "168h0m0s", "1w1d1h": "193h0m0s"} {
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
