package cmdline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sendPage = `  atm send bob "The parser is done."

usage: atm send TO[,TO…] [TEXT…]   (or msg)
delivers

  -m, --message TEXT  the text
  --attach FILE…      a file beside the text
  --meta K=V…         a word for programs
  --subject S         one line
  --urgent            may break into a turn
  --ack               I need to know that you have it
  --fyi               no answer wanted
  --expires D         not to be acted on later

Exit 4: sent, not answered.

every command: --root DIR --team NAME --as NAME --lock-timeout D --json --quiet --help
`

const teamPage = `  atm team

usage: atm team
the members
  atm team ls         all teams
  atm team add NAME…  new members

  --watch  repaints

every command: --root DIR --team NAME --as NAME --lock-timeout D --json --quiet --help
`

const addPage = `  atm team add carol

usage: atm team add NAME…
new members

  --kind K  person, agent

every command: --root DIR --team NAME --as NAME --lock-timeout D --json --quiet --help
`

const allPage = `atm send TO[,TO…] [TEXT…]  delivers
atm read [ID…]             shows new mail
atm ls [AGENT]             a line each
atm where                  where you are
atm team                   the members
atm team ls                all teams
atm team add NAME…         new members
atm session new            a new one
atm session ls             all
atm run NAME [--] [CMD…]   runs a command
atm help [COMMAND|all]     what a command does; all: every command a line
atm version                prints the version
`

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"":                          "atm carries mail\n",
		"help":                      "atm carries mail\n",
		"--help":                    "atm carries mail\n",
		"-h":                        "atm carries mail\n",
		"--as bob":                  "atm carries mail\n",
		"--bogus --help":            "atm carries mail\n",
		"help --help":               "atm carries mail\n",
		"help send":                 sendPage,
		"help msg":                  sendPage,
		"help send bob":             sendPage,
		"send --help":               sendPage,
		"--help send":               sendPage,
		"help --help send":          sendPage,
		"send -h --bogus --body":    sendPage,
		"send bob hi --json --help": sendPage,
		"help team":                 teamPage,
		"team --help":               teamPage,
		"team ad --help":            teamPage,
		"help team add":             addPage,
		"team add --help":           addPage,
		"help all":                  allPage,
		"version":                   "atm 1.2.3\n",
		"--version":                 "atm 1.2.3\n",
		"version --json":            `{"version":"1.2.3"}` + "\n",
	} {
		var got []string
		r := run(t, t.Context(), mail(&got), strings.Fields(args)...)
		if diff := cmp.Diff(want, r.out); diff != "" || r.exit != 0 || r.err != "" || len(got) > 0 {
			t.Errorf("atm %s: exit %d, stderr %q, ran %v\n%s", args, r.exit, r.err, got, diff)
		}
	}
}

func TestHelpOfAnAppWithoutPages(t *testing.T) {
	a := mail(new([]string))
	a.Help = ""
	if r := run(t, t.Context(), a); r.out != allPage {
		t.Errorf("%v", r)
	}
	a.HelpAll = func() string { return "everything\n" }
	if r := run(t, t.Context(), a, "help", "all"); r.out != "everything\n" {
		t.Errorf("%v", r)
	}
}

// A verb with many flags shows them in two columns, and stays on one page.
func TestLongPage(t *testing.T) {
	a := mail(new([]string))
	for _, name := range strings.Fields("file due thread supersedes id type payload dry-run wait-ack wait-reply timeout batch") {
		a.Verbs[0].Flags = append(a.Verbs[0].Flags, Flag{Name: name, Usage: "what " + name + " does"})
	}
	a.Verbs[0].Flags[3].Usage = "one line that tells, in a few words, what all of the rest is about"
	if err := a.Check(); err != nil && !strings.Contains(err.Error(), "--timeout takes a value") {
		t.Error(err)
	}
	const want = `  -m, --message TEXT  the text                      --supersedes        what supersedes does`
	if page := a.page(a.Verbs[:1]); !strings.Contains(page, want) || lines(page) > pageLines {
		t.Error(page)
	}
}

func TestCheck(t *testing.T) {
	if err := mail(new([]string)).Check(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(a *App){
		`atm read: --body is there twice`: func(a *App) {
			a.Verbs[1].Flags[0] = Flag{Name: "body", Aliases: []string{"body"}, Kind: String, Arg: "S", Usage: "u"}
		},
		`atm read: every verb has --as`: func(a *App) {
			a.Verbs[1].Flags[0] = Flag{Name: "as", Kind: String, Arg: "S", Usage: "u"}
		},
		`atm read: every verb has -h`:                      func(a *App) { a.Verbs[1].Flags[1].Aliases = []string{"h"} },
		`atm read: "--Peek" is not a plain name`:           func(a *App) { a.Verbs[1].Flags[1].Name = "Peek" },
		`atm read: --peek: Arg does not fit its kind`:      func(a *App) { a.Verbs[1].Flags[1].Arg = "X" },
		`atm read: --peek: no usage`:                       func(a *App) { a.Verbs[1].Flags[1].Usage = "" },
		`atm read: --limit: "x" cannot be its default`:     func(a *App) { a.Verbs[1].Flags[0].Default = "x" },
		`atm read: the name "msg" is taken`:                func(a *App) { a.Verbs[1].Aliases = []string{"msg"} },
		`atm a b: "a b" is not a plain name`:               func(a *App) { a.Verbs[1].Name = "a b" },
		`atm read: does nothing`:                           func(a *App) { a.Verbs[1].Run = nil },
		`atm read: Args and MaxArgs contradict each other`: func(a *App) { a.Verbs[1].Args = "" },
		`atm read: needs more arguments than it takes`:     func(a *App) { a.Verbs[1].MaxArgs, a.Verbs[1].MinArgs = 1, 2 },
		`atm read: no summary`:                             func(a *App) { a.Verbs[1].Summary = "" },
		`atm read: no example`:                             func(a *App) { a.Verbs[1].Examples = nil },
		`atm team ls: a sub has no subs`:                   func(a *App) { a.Verbs[4].Subs[0].Subs = a.Verbs[5].Subs },
		`atm: the help page has 26 lines, 25 are allowed`:  func(a *App) { a.Help = strings.Repeat("\n", 26) },
		`atm read: the help page has a line of 101 columns, 100 are allowed: ` + strings.Repeat("é", 101): func(a *App) {
			a.Verbs[1].Notes = []string{strings.Repeat("é", 101)}
		},
	} {
		a := mail(new([]string))
		spoil(a)
		if err := a.Check(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}
	}
}
