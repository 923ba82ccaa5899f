package cmdline

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"send bob hi", `atm send ["bob" "hi"]`},
		{"--as alice send bob hi", `atm send ["bob" "hi"] as=alice`},
		{"send --as alice bob hi", `atm send ["bob" "hi"] as=alice`},
		{"send bob hi --as=alice", `atm send ["bob" "hi"] as=alice`},
		{"--limit 5 read", `atm read [] limit=5`},
		{"-n 5 read", `atm read [] limit=5`},
		{"-n=5 read", `atm read [] limit=5`},
		{"--as read read", `atm read [] as=read`},
		{"msg bob hi", `atm send ["bob" "hi"]`},
		{"send bob -m hi", `atm send ["bob"] message=hi`},
		{"send bob --body hi", `atm send ["bob"] message=hi`},
		{"send bob --body=a=b", `atm send ["bob"] message=a=b`},
		{"send bob --body= x", `atm send ["bob" "x"] message=`},
		{"send bob --body -5", `atm send ["bob"] message=-5`},
		{"send bob --body - x", `atm send ["bob" "x"] message=-`},
		{"send bob -", `atm send ["bob" "-"]`},
		{"send bob -- --ack --json -", `atm send ["bob" "--ack" "--json" "-"]`},
		{"send bob -- a -- b", `atm send ["bob" "a" "--" "b"]`},
		{"-- send bob --ack", `atm send ["bob" "--ack"]`},
		{"send bob --ack=false --urgent=true", `atm send ["bob"] urgent=true ack=false`},
		{"send bob --attach a --attach=b --meta k=v --meta k=w=x", `atm send ["bob"] attach=["a" "b"] meta=[["k" "v"] ["k" "w=x"]]`},
		{"send bob --ack --ack --as a --as a", `atm send ["bob"] ack=true as=a`},
		{"send bob --expires 1d12h --lock-timeout 0", `atm send ["bob"] expires=36h0m0s lock-timeout=0s`},
		{"team", `atm team []`},
		{"team --watch", `atm team [] watch=true`},
		{"team add bob carol --kind person", `atm team add ["bob" "carol"] kind=person`},
		{"--kind person team --as add add bob", `atm team add ["bob"] kind=person as=add`},
		{"run bob --detach claude --continue --json", `atm run ["bob" "claude" "--continue" "--json"] detach=true`},
		{"run bob claude -- --help", `atm run ["bob" "claude" "--" "--help"]`},
		{"run bob -- claude --help", `atm run ["bob" "claude" "--help"]`},
		{"run --size 1x1 bob --json", `atm run ["bob"] size=1x1 json=true`},
		{"read --quiet", `atm read [] quiet=true`},
		{"ls bob", `atm ls ["bob"]`},
		{"inbox bob", `atm ls ["bob"]`},
		{"session new", `atm session new []`},
	} {
		var got []string
		r := run(t, t.Context(), mail(&got), strings.Fields(test.args)...)
		if r.exit != 0 || len(got) != 1 || got[0] != test.want {
			t.Errorf("atm %s:\ngot  %v %v\nwant %s", test.args, got, r, test.want)
		}
	}
}

// A flag may take a value in one verb and none in another: before the verb, the
// word behind it tells.
func TestValueInSomeVerbs(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"send bob --urgent hi", `atm send ["bob" "hi"] urgent=true`},
		{"--urgent send bob hi", `atm send ["bob" "hi"] urgent=true`},
		{"read --urgent soon", `atm read [] urgent=soon`},
		{"--urgent soon read", `atm read [] urgent=soon`},
		{"--urgent=soon read", `atm read [] urgent=soon`},
	} {
		var got []string
		a := mail(&got)
		a.Verbs[1].Flags = append(a.Verbs[1].Flags[:1:1], Flag{Name: "urgent", Kind: String, Arg: "S", Usage: "u"})
		r := run(t, t.Context(), a, strings.Fields(test.args)...)
		if r.exit != 0 || len(got) != 1 || got[0] != test.want {
			t.Errorf("atm %s:\ngot  %v %v\nwant %s", test.args, got, r, test.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	const dashes = "text that begins with - goes after --"
	for _, test := range []struct{ args, message, hint string }{
		{"raed", `unknown command "raed"`, `did you mean "atm read"?`},
		{"lsit", `unknown command "lsit"`, `did you mean "atm list"?`},
		{"--as alice snd bob", `unknown command "snd"`, `did you mean "atm send"?`},
		{"frobnicate", `unknown command "frobnicate"`, `atm help all`},
		{"frobnicate --help", `unknown command "frobnicate"`, `atm help all`},
		{"verison", `unknown command "verison"`, `did you mean "atm version"?`},
		{"--bogus x send bob", `unknown flag --bogus`, `atm --help`},
		{"--bogus read", `unknown flag --bogus for atm read`, `atm read --help`},
		{"--jsno", `unknown flag --jsno`, `did you mean --json?`},
		{"--detach", `--detach needs a command`, `atm help all`},
		{"read --pekk", `unknown flag --pekk for atm read`, `did you mean --peek?`},
		{"read --peek=x", `--peek is on or off, not "x"`, `--peek or --peek=false`},
		{"read -peek", `unknown flag -peek for atm read`, `did you mean --peek?`},
		{"read -n5", `unknown flag -n5 for atm read`, `did you mean -n 5?`},
		{"read --n 5", `unknown flag --n for atm read`, `did you mean -n?`},
		{"read --detach", `unknown flag --detach for atm read`, `atm read --help`},
		{"read --size 5", `unknown flag --size for atm read`, `atm read --help`},
		{"send bob --bod hi", `unknown flag --bod for atm send`, `did you mean --body?`},
		{"send bob -1", `unknown flag -1 for atm send`, dashes},
		{"send bob --= x", `unknown flag -- for atm send`, dashes},
		{"where --x", `unknown flag --x for atm where`, `atm where --help`},
		{"send bob --body", `--body needs a value`, `--body TEXT`},
		{"send bob -m", `-m needs a value`, `-m TEXT`},
		{"send bob --body -- hi", `--body needs a value`, `--body TEXT`},
		{"send bob --body --ack", `--body needs a value`, `--body TEXT; a value that begins with - is written --body=TEXT`},
		{"send bob --body --as=bob", `--body needs a value`, `--body TEXT; a value that begins with - is written --body=TEXT`},
		{"send bob --body --detach", `--body needs a value`, `--body TEXT; a value that begins with - is written --body=TEXT`},
		{"--body --detach send bob", `--body needs a value`, `--body TEXT; a value that begins with - is written --body=TEXT`},
		{"--as --team x send bob", `--as needs a value`, `--as NAME; a value that begins with - is written --as=NAME`},
		{"send bob --as a --as b", `--as given twice: "a" and "b"`, `leave one out`},
		{"send bob --ack --ack=false", `--ack given twice: "true" and "false"`, `leave one out`},
		{"read -n x", `-n needs a whole number, not "x"`, `for example -n 20`},
		{"read --limit=-5", `--limit needs a whole number, not "-5"`, `for example --limit 20`},
		{"read --limit 99999999999999999999", `--limit needs a whole number, not "99999999999999999999"`, `for example --limit 20`},
		{"read --timeout soon", `--timeout needs a duration, not "soon"`, `for example --timeout 90s; units are s, m, h, d`},
		{"send bob --expires -5m", `--expires needs a duration, not "-5m"`, `for example --expires 30s; units are s, m, h, d`},
		{"send bob --meta build", `--meta needs k=v, not "build"`, `for example --meta build=42`},
		{"send bob --meta =x", `--meta needs k=v, not "=x"`, `for example --meta build=42`},
		{"send", `atm send needs TO[,TO…] [TEXT…]`, `atm send bob "The parser is done."`},
		{"where x", `atm where takes no arguments, not "x"`, `atm where --help`},
		{"ls a b", `"b" is one argument too many for atm ls`, `atm ls --help`},
		{"team ad bob", `unknown command "ad" after atm team`, `did you mean "atm team add"?`},
		{"team frobnicate", `unknown command "frobnicate" after atm team`, `atm team --help`},
		{"team add", `atm team add needs NAME…`, `atm team add carol`},
		{"session", `atm session needs one of new, ls`, `atm session --help`},
		{"help raed", `unknown command "raed"`, `did you mean "atm read"?`},
		{"help team ad", `unknown command "ad" after atm team`, `did you mean "atm team add"?`},
		{"version x", `atm version takes no arguments, not "x"`, `atm version --help`},
		{"completion \x1b[2J", `unknown command "completion"`, `atm help all`},
	} {
		var got []string
		want := result{2, "", "atm: " + test.message + "\natm: hint: " + test.hint + "\n"}
		if r := run(t, t.Context(), mail(&got), strings.Fields(test.args)...); r != want || len(got) > 0 {
			t.Errorf("atm %s:\ngot  %v %v\nwant %v", test.args, r, got, want)
		}
	}
}

// An item of a list and a line of a diff are text; a sentence that begins with
// a flag is not.
func TestTextThatBeginsWithADash(t *testing.T) {
	for _, text := range []string{"- first\n- second", "--- a/file.go", "- [ ] later"} {
		var got []string
		if r := run(t, t.Context(), mail(&got), "send", "bob", text); r.exit != 0 || len(got) != 1 || !strings.Contains(got[0], strings.Fields(text)[1]) {
			t.Errorf("%q: %v %v", text, r, got)
		}
	}
	r := run(t, t.Context(), mail(new([]string)), "send", "bob", "--first "+strings.Repeat("x", 1000))
	want := `atm: "--first xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" begins with -, so it is no text` + "\natm: hint: text that begins with - goes after --\n"
	if r.err != want {
		t.Errorf("got  %s\nwant %s", r.err, want)
	}
}

// --json counts wherever it is a flag, also when the rest is wrong.
func TestJSONErrors(t *testing.T) {
	for args, asJSON := range map[string]bool{
		"raed --json":                 true,
		"--json raed":                 true,
		"raed --json=false":           false,
		"read --pekk --json":          true,
		"send bob --body --json":      true,
		"send bob --pekk -- --json":   false,
		"send bob --body=--json --pe": false,
		"run bob claude --json":       false,
		"run --json --x bob claude":   true,
	} {
		a := mail(new([]string))
		a.Verbs[len(a.Verbs)-1].MaxArgs = 1 // run fails
		r := run(t, t.Context(), a, strings.Fields(args)...)
		if r.exit != 2 || (r.err == "") != asJSON || strings.HasPrefix(r.out, `{"error":{"code":"usage","message":"`) != asJSON {
			t.Errorf("%s: %v", args, r)
		}
	}
}

// Flags may stand anywhere: moving them changes nothing.
func TestFlagsAnywhere(t *testing.T) {
	value := rapid.SampledFrom([]string{"alice", "send", "read", "-", "-5", "- item", "", "x=y", "--no-such", "é", "a b", "--"})
	word := rapid.SampledFrom([]string{"bob", "hi", "-", "send", "team", "", "x=y", "--x y"[4:], "é"})
	rapid.Check(t, func(t *rapid.T) {
		var units [][]string
		add := func(name string, taken bool) {
			if !rapid.Bool().Draw(t, "give "+name) {
				return
			}
			switch v := value.Draw(t, name); {
			case !taken:
				units = append(units, []string{name})
			case v == "--" || rapid.Bool().Draw(t, "joined"):
				units = append(units, []string{name + "=" + v})
			default:
				units = append(units, []string{name, v})
			}
		}
		for _, name := range []string{"--as", "--team", "--body", "--attach", "--subject"} {
			add(name, true)
		}
		for _, name := range []string{"--ack", "--urgent", "--json", "--quiet"} {
			add(name, false)
		}
		words := append([]string{"send", "bob"}, rapid.SliceOfN(word, 0, 3).Draw(t, "words")...)
		if rapid.Bool().Draw(t, "sub") {
			words = []string{"team", "add", "bob"}
			kept := units[:0]
			for _, unit := range units {
				name, _, _ := strings.Cut(unit[0], "=")
				if name == "--as" || name == "--team" || name == "--json" || name == "--quiet" {
					kept = append(kept, unit)
				}
			}
			units = append(kept, []string{"--kind", "person"})
		}
		tail := rapid.SampledFrom([][]string{nil, {"--"}, {"--", "--ack", "x"}}).Draw(t, "tail")

		first := append([]string{}, words...)
		for _, unit := range units {
			first = append(first, unit...)
		}
		moved := append([]string{}, words...)
		for _, i := range rapid.Permutation(indices(len(units))).Draw(t, "order") {
			// A place between two words, never inside another flag.
			places := starts(moved, units)
			at := rapid.SampledFrom(places).Draw(t, "at")
			moved = append(moved[:at:at], append(append([]string{}, units[i]...), moved[at:]...)...)
		}
		want, got := outcome(t, append(first, tail...)), outcome(t, append(moved, tail...))
		if want != got {
			t.Fatalf("%q: %s\n%q: %s", first, want, moved, got)
		}
		if !strings.HasPrefix(want, "0 ") {
			t.Fatalf("%q: %s", first, want)
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// starts returns where in words a flag may be put in: not behind a flag that
// waits for its value.
func starts(words []string, units [][]string) []int {
	var places []int
	for i := 0; i <= len(words); i++ {
		inside := false
		for _, unit := range units {
			inside = inside || i > 0 && len(unit) == 2 && words[i-1] == unit[0]
		}
		if !inside {
			places = append(places, i)
		}
	}
	return places
}

// outcome returns the exit code and what the verb saw.
func outcome(t *rapid.T, args []string) string {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var got []string
	a := mail(&got)
	a.Stdin, a.Stdout, a.Stderr = null, null, null
	return fmt.Sprint(a.Run(t.Context(), args), " ", got)
}

// Whatever the words are, the parser comes back with a known exit code and a
// short message that cannot steer a terminal.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{
		"", "send\nbob\nhi", "--as\nalice\nsend\nbob\n--\n--x", "run\nbob\n--size\n1x1\nclaude\n--help", "team\nad\n--json",
		"help\nteam\nadd", "-\n--\n---\n-=\n--=\n=", "read\n-n\n-1", "send\n\x1b[2J\n--\u202e", "read\n--limit=\xff", "--version\n--help",
		"send\nbob\n--meta\n=", "send\n-m\n--body", "completion\nfish", "help\nall", "-\xff", "-é",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	out, err := create(f, dir, "out"), create(f, dir, "err")
	f.Fuzz(func(t *testing.T, words string) {
		for _, file := range []*os.File{out, err} {
			file.Truncate(0)
			file.Seek(0, 0)
		}
		a := mail(new([]string))
		a.Stdout, a.Stderr = out, err
		exit := a.Run(t.Context(), strings.Split(words, "\n"))
		said := content(t, err)
		switch {
		case exit != ExitDone && exit != ExitUsage:
			t.Errorf("exit %d", exit)
		case exit == ExitDone && said != "":
			t.Errorf("done, and said %q", said)
		case lines(said) > 3 || strings.ContainsFunc(strings.ReplaceAll(said, "\n", ""), steers):
			t.Errorf("stderr %q", said)
		case exit == ExitUsage && said == "" && !strings.HasPrefix(content(t, out), `{"error":{"code":"usage"`):
			t.Errorf("exit 2, and stdout has %q", content(t, out))
		}
	})
}
