package agents

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The embedded files have no mistakes.
func TestBuiltIn(t *testing.T) {
	for _, name := range builtInNames() {
		text, err := embedded.ReadFile(name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		_, mistakes := Parse(name, text)
		for _, m := range mistakes {
			t.Errorf("%s.toml: %s", name, m)
		}
	}
}

const start = "[screen.prompt]\npattern = '^> ?(?P<draft>.*)'\n"

// Every mistake is reported with its line and column, or its key.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		about, text string
		want        []string // the beginning of each mistake
	}{
		{"nothing", "", nil},
		{"a prompt", start, nil},
		{"a shell", "plain = true\n[keys]\ninterrupt = \"Ctrl-C\"", nil},
		{"unknown keys", "comand = 1\n" + start + "patern = \"x\"", []string{
			`line 1, column 1: unknown key "comand"`,
			`line 4, column 1: unknown key "screen.prompt.patern"`,
		}},
		{"a wrong type", start + "last = \"2\"", []string{`line 3, column 8: screen.prompt.last: cannot decode TOML string`}},
		{"no pattern", start + "[screen.busy]\npattern = {}", []string{`screen.busy.pattern: a pattern is needed`}},
		{"a broken pattern", start + "[screen.asks]\noption = \"(\"", []string{`screen.asks.option: error parsing regexp`}},
		{"a part that breaks what it extends", "extends = \"claude\"\n[parts]\nrule = \"(\"", []string{`screen.asks.pattern: error parsing regexp`}},
		{"a key", "[keys]\ninterrupt = \"Escape\"", []string{`line 2, column 13: keys.interrupt: "Escape" is not a key`}},
		{"groups", "[screen.prompt]\npattern = '^> (.*)'\n[screen.busy]\npattern = '(?P<tool>x)'\n[screen.asks]\npattern = '(?P<allow>x)'\noption = '(?P<labl>x)'", []string{
			`screen.asks.option: it needs a group label`,
			`screen.asks.option: the group "labl" is not known here`,
			`screen.asks.pattern: the group "allow" is not known here; known are: tool, permission, trust, question`,
			`screen.busy.pattern: the group "tool" is not known here`,
			`screen.prompt.pattern: it needs a group for what is typed`,
		}},
		{"a title", start + "title = 'x'", []string{`screen.prompt.title: a title is no prompt`}},
		{"rows", start + "last = 201", []string{`screen.prompt.last: 201 is not from 0 to 200`}},
		{"a long pattern", "[screen.busy]\npattern = \"" + strings.Repeat("x", maxPattern+1) + "\"", []string{`screen.busy.pattern: the pattern has more than 2000 bytes`}},
		{"a long list", start + "[command]\nnames = [" + strings.Repeat("\"x\",", maxList+1) + "]", []string{`command.names: 201 items are more than 200`}},
		{"unproven", "unproven = true\nversions = [\"1\"]\n" + start, []string{`unproven: it was tried with the versions 1`}},
		{"an id", start + "[resume]\nid = [\"--resume\"]", []string{`resume.id: {id} is missing`}},
		{"a part", "[parts]\nx = \"a|b\"\n[screen.busy]\npattern = \"^(?:{{x}})(\"", []string{"screen.busy.pattern: error parsing regexp: missing closing ): `(?m)^(?:a|b)(`"}},
		{"empty names", "[command]\nnames = [\"\"]\n" + start, []string{`command.names: a name is empty`}},
		{"an escape", "[typing]\nescapes = [{ pattern = \"@\" }]\n" + start, []string{`typing.escapes[0]: an escape needs a pattern`}},
		{"what it extends", "extends = \"clode\"\n" + start, []string{`extends: "clode" is no built-in driver`}},
		{"a shell that it extends", "extends = \"plain\"\n" + start, []string{`extends: "plain" is no built-in driver`}},
		{"syntax", "x = \n", []string{`line 1, column 5: unexpected character`}},
	} {
		_, mistakes := Parse("x", []byte(c.text))
		if !slices.EqualFunc(mistakes, c.want, strings.HasPrefix) {
			t.Errorf("%s:\n%s\nnot\n%s", c.about, strings.Join(mistakes, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A file that extends a built-in one changes what it says, however it is written.
func TestExtended(t *testing.T) {
	from := BuiltInNamed("claude")
	for _, text := range []string{
		"extends = \"claude\"\nversions = []\nparts = { x = \"y\" }\nkeys = { interrupt_forgets = false }\ntyping = { escapes = [{ pattern = \"#\", typed = \"+\", legend = \"z\" }] }\n",
		"extends = \"claude\"\nversions = []\n[parts]\nx = \"y\"\n[keys]\ninterrupt_forgets = false\n[[typing.escapes]]\npattern = \"#\"\ntyped = \"+\"\nlegend = \"z\"\n",
	} {
		f, mistakes := Parse("claude", []byte(text))
		if len(mistakes) > 0 || len(f.Versions) > 0 || f.Keys.Forgets || f.Parts["x"] != "y" || len(f.Parts) != len(from.Parts)+1 || f.Extends != "claude" {
			t.Errorf("%+v: %v", f, mistakes)
		}
		if e := f.Typing.Escapes; len(e) != len(from.Typing.Escapes)+1 || e[0].Typed != "+" || e[1].Typed != from.Typing.Escapes[0].Typed {
			t.Errorf("escapes: %v", e)
		}
		if !slices.Equal(f.Command.Names, from.Command.Names) || f.Screen.Prompt.Pattern.String() != from.Screen.Prompt.Pattern.String() || len(f.Typing.Refused) != len(from.Typing.Refused) {
			t.Errorf("%+v", f)
		}
	}
}

// A person's files add drivers and take the place of built-in ones, unless they have mistakes.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"aider.toml": start, "claude.toml": start, "codex.toml": "x = 1\n", "no_good.toml": "x = 1\n", "plain.toml": start, "front.toml": "protocol = \"acp\"\n" + start, "auto.toml": start, "Big.toml": start,
		"large.toml": strings.Repeat("#", MaxSize+1), "notes.txt": "", ".hidden.toml": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	var got []string
	all := Load(dir)
	for _, e := range all {
		if e.Path != "" {
			got = append(got, fmt.Sprintf("%s used=%v any=%v", e.Name, e.Fault() == nil, e.File != nil))
		}
	}
	want := []string{
		"Big used=false any=false", "aider used=true any=true", "auto used=false any=false", "claude used=true any=true", "codex used=false any=true",
		"dir used=false any=false", "front used=false any=false", "large used=false any=false", "no_good used=false any=false", "plain used=false any=true",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if len(Names(dir)) != len(all) || len(Load("")) != len(builtInNames()) {
		t.Errorf("%v", Names(dir))
	}
}

// docs/drivers.md explains every key and word, and shows a whole file.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(r reflect.Type) {
		for r.Kind() == reflect.Pointer || r.Kind() == reflect.Slice || r.Kind() == reflect.Map {
			r = r.Elem()
		}
		if r.Kind() != reflect.Struct || seen[r] || r == reflect.TypeFor[Pattern]() {
			return
		}
		seen[r] = true
		for _, f := range reflect.VisibleFields(r) {
			key := cmp.Or(f.Tag.Get("toml"), strings.ToLower(f.Name))
			if key == "-" || f.Anonymous {
				continue
			}
			if !regexp.MustCompile("`" + key + "`|`" + key + " =|[.[]" + key + "\\]").MatchString(page) {
				t.Errorf("docs/drivers.md does not explain %s", key)
			}
			check(f.Type)
		}
	}
	check(reflect.TypeFor[File]())
	for _, group := range slices.Concat(DialogKinds, optionGroups, []string{"draft", "tool"}) {
		if !strings.Contains(page, "(?P<"+group+">") {
			t.Errorf("docs/drivers.md does not explain the group %s", group)
		}
	}
	example, err := os.ReadFile("../testdata/examples/zork.toml")
	if err != nil || !strings.Contains(page, "```toml\n"+string(example)+"```\n") {
		t.Errorf("docs/drivers.md does not show zork.toml as it is: %v", err)
	}
}

// No file makes Parse fail, and each mistake has a text.
func FuzzParse(f *testing.F) {
	for _, name := range builtInNames() {
		text, _ := embedded.ReadFile(name + ".toml")
		f.Add(text)
	}
	f.Add([]byte(start + "[parts]\nx = '{{x}}'"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, mistakes := Parse("x", text)
		for _, m := range mistakes {
			if m == "" {
				t.Error(mistakes)
			}
		}
	})
}
