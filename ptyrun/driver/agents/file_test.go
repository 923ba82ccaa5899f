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

const start = "[screen]\n[screen.box]\ntext = '^> (.*)'\nmore = '^  (.*)'\n"

// Every mistake is reported with its line.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		about, text string
		want        []string // the beginning of each mistake
	}{
		{"nothing", "", nil},
		{"a box", start, nil},
		{"a shell", "plain = true\n[keys]\ninterrupt = \"Ctrl-C\"", nil},
		{"unknown keys", "comand = 1\n" + start + "bottm = \"x\"", []string{`1: unknown key "comand"; did you mean "command"?`, `6: unknown key "bottm" in screen.box; did you mean "bottom"?`}},
		{"a wrong type", "comand = 1\n" + start + "max_below = \"2\"\nmodes = 1", []string{
			`1: unknown key "comand"`, "6: screen.box.max_below: a whole number is needed, not a TOML string", "7: screen.box.modes: a list of tables is needed",
		}},
		{"another", start + "modes = 1", []string{"5: screen.box.modes: a list of tables is needed, not a TOML integer"}},
		{"no pattern", start + "bottom = {}", []string{"5: bottom: a string in quotes is needed"}},
		{"a broken option", start + "[screen.dialog]\noption = \"(\"", []string{"6: option: error parsing regexp"}},
		{"a part that breaks what it extends", "extends = \"claude\"\n[parts]\ntool = \"(\"", []string{"2: parts: in claude, line 187", "2: parts: in claude, line 90", "2: parts: in claude, line 91"}},
		{"no table", start + "below = [\n1]", []string{"6: screen.box.below: a table is needed, not a TOML integer"}},
		{"a key", "[keys]\ninterrupt = \"Escape\"", []string{`2: keys.interrupt: "Escape" is not a key`}},
		{"a style", start + "[[screen.rows]]\npattern = \"x\"\nkind = \"tool\"\nmark = \"red\"", []string{`8: screen.rows.mark: "red" is not one of ink`}},
		{"words", "[keys]\ninterrupt = \"Esc\"\n" + start + "below = [\n { text = \"x\", means = \"bussy\" },\n { text = \"\", means = \"busy\" }]\n[screen.dialog]\noption = '(?P<labl>x)'", []string{
			`8: means: "bussy" is not one of busy`, "9: box.below: a text is empty",
			`11: a group of dialog.option: "labl" is not one of`, `11: dialog.option needs a group`,
		}},
		{"progress", strings.Replace(start, "[screen]", "[screen]\nprogress = { busy = \"thinking\", none = \"done\" }", 1), []string{
			`2: progress: "busy" is not one of none, normal, error, indeterminate, paused`, `2: progress: "done" is not one of idle`,
		}},
		{"rows", start + "[[screen.rows]]\nkind = \"busy\"\n[[screen.rows]]\npattern = \"(\"\nkind = \"tool\"\n\n[[screen.rows]]\npattern = \"x\"\nkind = \"bsy\"\nis = \"grey\"", []string{
			"5: a row needs a pattern", "8: pattern: error parsing regexp", `11: is: there is no condition "grey"`, `11: kind: "bsy" is not one of`,
		}},
		{"a circle", start + "[screen.conditions]\na = { is = \"b\" }\nb = { not = { is = \"a\" } }", []string{"6: conditions are in one another", "7: conditions are in one another"}},
		{"many conditions", start + "[screen.conditions]\na = { pattern = \"x\" }\n" + growing(7), []string{"11: the conditions up to here have more than 5000 parts"}},
		{"a long pattern", start + "[screen.conditions]\na = { pattern = \"" + strings.Repeat("x", maxPattern+1) + "\" }", []string{"6: pattern: the pattern has more than 2000 bytes"}},
		{"a long list", start + "placeholders = [" + strings.Repeat("\"x\",", maxList+1) + "]", []string{"5: screen.box.placeholders has 201 items, of 200 at most"}},
		{"unproven", "unproven = true\nversions = [\"1\"]\n" + start, []string{"1: unproven: it was tried with the versions 1"}},
		{"an id", start + "[resume]\nid = [\"--resume\"]", []string{"6: resume.id: {id} is missing"}},
		{"a part", "[parts]\nx = \"a|b\"\n" + start + "[screen.dialog]\nheading = \"^(?:{{x}})(\"", []string{"8: heading: error parsing regexp: missing closing ): `^(?:a|b)(`"}},
		{"empty names", "[command]\nnames = [\"\"]\n" + start, []string{"1: command: a name is empty"}},
		{"numbers", "" + start + "max_below = 101", []string{"5: box.max_below is 101, not from 0 to 100"}},
		{"a sign of no reader", strings.Replace(start, "[screen]", "[screen]\nshown = \"x\"", 1), []string{`2: shown: only [reader] has one`}},
		{"a reader without a sign", start + "[reader.box]\ntop = \"x\"", []string{`5: box needs text`, `5: reader needs shown`}},
		{"an escape", "[typing]\nescapes = [{ pattern = \"@\" }]\n" + start, []string{"2: an escape needs a pattern"}},
		{"former keys", start + "shape = \"rules\"\n[screen.dialog]\nkeyed = true", []string{
			`5: unknown key "shape" in screen.box: say it with a pattern: top, bottom and`, `7: unknown key "keyed" in screen.dialog: say it with a pattern: dialog.option`,
		}},
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

// growing returns conditions of which each has six times as many parts as the one before.
func growing(n int) (text string) {
	for i := 1; i < n; i++ {
		text += fmt.Sprintf("a%d = { all = [%s] }\n", i, strings.Repeat("{ is = \"a"+strings.TrimSuffix(fmt.Sprint(i-1), "0")+"\" },", 6))
	}
	return text
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
		if r.Kind() != reflect.Struct || seen[r] || r == reflect.TypeFor[Pattern]() || r == reflect.TypeFor[Style]() {
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
	for _, word := range slices.Concat(chosenBy, optionKinds, ProgressStates, Kinds, styles, gates) {
		if !strings.Contains(page, "`"+word+"`") {
			t.Errorf("docs/drivers.md does not explain the word %q", word)
		}
	}
	for _, group := range optionGroups {
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
	f.Add([]byte(start + "[screen.conditions]\na = { is = \"a\", any = [{ is = \"a\" }] }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, mistakes := Parse("x", text)
		for _, m := range mistakes {
			if m.Line < 1 || m.Line > strings.Count(string(text), "\n")+1 || m.Text == "" {
				t.Errorf("%+v", m)
			}
		}
	})
}
