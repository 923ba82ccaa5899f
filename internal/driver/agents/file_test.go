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

// Every mistake is reported with its line.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		about, text string
		want        []string // the beginning of each mistake
	}{
		{"nothing", "", nil},
		{"a prompt", start, nil},
		{"a shell", "plain = true\n[keys]\ninterrupt = \"Ctrl-C\"", nil},
		{"unknown keys", "comand = 1\n" + start + "patern = \"x\"", []string{`1: unknown key "comand"; did you mean "command"?`, `4: unknown key "patern" in screen.prompt; did you mean "pattern"?`}},
		{"a wrong type", start + "last = \"2\"", []string{"3: screen.prompt.last: a whole number is needed, not a TOML string"}},
		{"no pattern", start + "[screen.busy]\npattern = {}", []string{"4: pattern: a string in quotes is needed"}},
		{"a broken pattern", start + "[screen.asks]\noption = \"(\"", []string{"4: option: error parsing regexp"}},
		{"a part that breaks what it extends", "extends = \"claude\"\n[parts]\nrule = \"(\"", []string{"2: parts: in claude, line "}},
		{"a key", "[keys]\ninterrupt = \"Escape\"", []string{`2: keys.interrupt: "Escape" is not a key`}},
		{"groups", "[screen.prompt]\npattern = '^> (.*)'\n[screen.busy]\npattern = '(?P<tool>x)'\n[screen.asks]\npattern = '(?P<allow>x)'\noption = '(?P<labl>x)'", []string{
			"2: the pattern of the prompt needs a group", `4: the group "tool" is not known here`, `6: the group "allow" is not known here; known are: tool, permission, trust, question`,
			`7: option needs a group label`, `7: the group "labl" is not known here`,
		}},
		{"a title", start + "title = 'x'", []string{"3: a title is no prompt"}},
		{"rows", start + "last = 201", []string{"3: last is 201, not from 0 to 200"}},
		{"a long pattern", "[screen.busy]\npattern = \"" + strings.Repeat("x", maxPattern+1) + "\"", []string{"2: pattern: the pattern has more than 2000 bytes"}},
		{"a long list", start + "[command]\nnames = [" + strings.Repeat("\"x\",", maxList+1) + "]", []string{"4: command.names has 201 items, of 200 at most"}},
		{"unproven", "unproven = true\nversions = [\"1\"]\n" + start, []string{"1: unproven: it was tried with the versions 1"}},
		{"an id", start + "[resume]\nid = [\"--resume\"]", []string{"4: resume.id: {id} is missing"}},
		{"a part", "[parts]\nx = \"a|b\"\n[screen.busy]\npattern = \"^(?:{{x}})(\"", []string{"4: pattern: error parsing regexp: missing closing ): `(?m)^(?:a|b)(`"}},
		{"empty names", "[command]\nnames = [\"\"]\n" + start, []string{"1: command: a name is empty"}},
		{"an escape", "[typing]\nescapes = [{ pattern = \"@\" }]\n" + start, []string{"2: an escape needs a pattern"}},
		{"what it extends", "extends = \"clode\"\n" + start, []string{`1: extends: "clode" is no built-in driver`}},
		{"a shell that it extends", "extends = \"plain\"\n" + start, []string{`1: extends: "plain" is no built-in driver`}},
		{"syntax", "x = \n", []string{"1: "}},
	} {
		_, mistakes := Parse("x", []byte(c.text))
		var got []string
		for _, m := range mistakes {
			got = append(got, fmt.Sprintf("%d: %s", m.Line, m.Text))
		}
		ok := len(got) == len(c.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s:\n%s\nnot\n%s", c.about, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
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

// No file makes Parse fail, and the lines of its mistakes exist.
func FuzzParse(f *testing.F) {
	for _, name := range builtInNames() {
		text, _ := embedded.ReadFile(name + ".toml")
		f.Add(text)
	}
	f.Add([]byte(start + "[parts]\nx = '{{x}}'"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, mistakes := Parse("x", text)
		for _, m := range mistakes {
			if m.Line < 1 || m.Line > strings.Count(string(text), "\n")+1 || m.Text == "" {
				t.Errorf("%+v", m)
			}
		}
	})
}
