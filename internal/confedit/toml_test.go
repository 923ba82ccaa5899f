package confedit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func parseTOML(t testing.TB, src string) *TOML {
	t.Helper()
	doc, err := ParseTOML([]byte(src))
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	return doc
}

// agree makes sure that a real reader of TOML takes what an edit made.
func agree(t testing.TB, text []byte) {
	t.Helper()
	var v map[string]any
	if err := toml.Unmarshal(text, &v); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}

// facts are what a document says, in order: every key with its value.
func facts(d *TOML) []string {
	var out []string
	for _, e := range d.Entries {
		if e.opens >= 0 {
			continue // its members say it
		}
		v := e.Text
		for _, el := range e.Elems {
			v += "|" + el.Text
		}
		out = append(out, strings.Join(e.Path, ".")+"="+v)
	}
	return out
}

func TestAddElem(t *testing.T) {
	path := []string{"box", "roots"}
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", "[box]\nroots = [\"/r\"]\n"},
		{"no such table", "model = \"x\"\n", "model = \"x\"\n\n[box]\nroots = [\"/r\"]\n"},
		{"no last newline", "a = 1", "a = 1\n\n[box]\nroots = [\"/r\"]\n"},
		{"CRLF", "a = 1\r\n", "a = 1\r\n\r\n[box]\r\nroots = [\"/r\"]\r\n"},
		{"the table, with a comment", "[box] # mine\n  net = true # on\n\n# next\n[z]\n", "[box] # mine\n  net = true # on\n  roots = [\"/r\"]\n\n# next\n[z]\n"},
		{"an empty table", "[box]\n[z]\n", "[box]\nroots = [\"/r\"]\n[z]\n"},
		{"the table ends the file", "[box]\nnet = true", "[box]\nnet = true\nroots = [\"/r\"]"},
		{"a list", "[box]\nroots = [\"/a\"] # c\n", "[box]\nroots = [\"/a\", \"/r\"] # c\n"},
		{"an empty list", "[box]\nroots = []\n", "[box]\nroots = [\"/r\"]\n"},
		{"a tall list", "[box]\nroots = [\n  \"/a\", # first\n  # last\n]\n", "[box]\nroots = [\n  \"/a\", # first\n  # last\n  \"/r\",\n]\n"},
		{"a tall list, no comma", "[box]\nroots = [\n  \"/a\" # first\n]\n", "[box]\nroots = [\n  \"/a\", # first\n  \"/r\"\n]\n"},
		{"dotted", "box.net = true\na = 1\n", "box.net = true\nbox.roots = [\"/r\"]\na = 1\n"},
		{"dotted list", "box.roots = ['/a']\n", "box.roots = ['/a', \"/r\"]\n"},
		{"inline", "box = { net = true }\n", "box = { net = true, roots = [\"/r\"] }\n"},
		{"inline and empty", "box = {}\n", "box = { roots = [\"/r\"] }\n"},
		{"inline list", "box = {roots=[\"/a\"]}\n", "box = {roots=[\"/a\", \"/r\"]}\n"},
		{"only below it", "[box.sub]\nx = 1\n", "[box.sub]\nx = 1\n\n[box]\nroots = [\"/r\"]\n"},
		{"a quoted header", "[ 'box' ]\nnet = true\n", "[ 'box' ]\nnet = true\nroots = [\"/r\"]\n"},
		{"brackets in strings", "[a]\nt = \"\"\"\n[box]\nroots = []\n\"\"\"\n", "[a]\nt = \"\"\"\n[box]\nroots = []\n\"\"\"\n\n[box]\nroots = [\"/r\"]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			edit, err := parseTOML(t, c.src).AddElem("/r", path...)
			if err != nil {
				t.Fatal(err)
			}
			text := New([]byte(c.src))
			text.Apply(edit)
			if got := string(text.Bytes()); got != c.want {
				t.Fatalf("got\n%s\nwant\n%s", got, c.want)
			}
			if back, _ := Revert(text.Bytes(), text.Undo()); string(back) != c.src {
				t.Errorf("undone it is %q", back)
			}
			agree(t, text.Bytes())
			after := parseTOML(t, c.want)
			e := after.Find(path...)
			if n := len(e.Elems); n == 0 || e.Elems[n-1].Text != "/r" {
				t.Errorf("it does not say so: %q", facts(after))
			}
			// And away again, as one who has no record of it would.
			away := New(text.Bytes())
			away.Apply(after.RemoveElem(e, len(e.Elems)-1))
			after = parseTOML(t, string(away.Bytes()))
			if e := after.Find(path...); len(e.Elems) == 0 && parseTOML(t, c.src).Find(path...) == nil {
				away.Apply(after.RemoveKey(e))
				after = parseTOML(t, string(away.Bytes()))
				if !strings.Contains(c.src, "[box]") {
					if e := after.RemoveTable("box"); e != nil {
						away.Apply(e)
					}
				}
				after = parseTOML(t, string(away.Bytes()))
			}
			if a, b := facts(parseTOML(t, c.src)), facts(after); !slices.Equal(a, b) {
				t.Errorf("without it again %q, not %q", b, a)
			}
		})
	}
	for _, src := range []string{"box = 3\n", "[[box]]\n", "box = { roots = 3 }\n", "[box]\nroots = \"/a\"\n"} {
		if _, err := parseTOML(t, src).AddElem("/r", path...); err == nil {
			t.Errorf("%q took a root", src)
		}
	}
}

func TestSetString(t *testing.T) {
	path := []string{"policy", "set", "WHO"}
	for src, want := range map[string]string{
		"":                                  "[policy.set]\nWHO = \"bob\"\n",
		"[policy]\ninherit = \"all\"\n":     "[policy]\ninherit = \"all\"\n\n[policy.set]\nWHO = \"bob\"\n",
		"[policy]\nset = { A = 'b' } # c\n": "[policy]\nset = { A = 'b', WHO = \"bob\" } # c\n",
		"[policy.set]\nWHO = 'al' # me\n":   "[policy.set]\nWHO = \"bob\" # me\n",
		"policy.set.A = 'x'\n":              "policy.set.A = 'x'\npolicy.set.WHO = \"bob\"\n",
		"[policy]\nset.A = 'x'\n\n[b]\n":    "[policy]\nset.A = 'x'\nset.WHO = \"bob\"\n\n[b]\n",
		"policy = { set = { } }\n":          "policy = { set = { WHO = \"bob\" } }\n",
		"policy = { inherit = 'all' }\n":    "policy = { inherit = 'all', set.WHO = \"bob\" }\n",
	} {
		edit, err := parseTOML(t, src).SetString("bob", path...)
		if err != nil {
			t.Errorf("%q: %v", src, err)
			continue
		}
		text := New([]byte(src))
		text.Apply(edit)
		if got := string(text.Bytes()); got != want {
			t.Errorf("%q: got %q, want %q", src, got, want)
		}
		agree(t, text.Bytes())
		after := parseTOML(t, want)
		e := after.Find(path...)
		if e == nil || e.Text != "bob" {
			t.Fatalf("%q does not say so: %q", want, facts(after))
		}
		away := New(text.Bytes())
		away.Apply(after.RemoveKey(e))
		if d := parseTOML(t, string(away.Bytes())); d.Find(path...) != nil {
			t.Errorf("%q: still there: %q", want, away.Bytes())
		}
	}
}

func TestTOMLRefused(t *testing.T) {
	for src, want := range map[string]string{
		"a = \n":                 "line 1, column 5: unexpected '\\n': a value should stand here",
		"a = 1 b = 2\n":          "line 1, column 7: unexpected 'b': the line should end here",
		"a = \"x\n":              "line 1, column 5: a string that is not closed",
		"[a\n":                   "line 1, column 3: unexpected '\\n': the table's name should end here",
		"a = [1 2]\n":            "line 1, column 8: unexpected '2': a list goes on with a comma",
		"a = 1\na = 2\n":         "line 2, column 1: the key a is there twice",
		"[a]\n[a]\n":             "line 2, column 1: the table [a] is there twice",
		"= 1\n":                  "line 1, column 1: unexpected '=': a key should stand here",
		"a = {b = 1\n}":          "line 1, column 11: unexpected '\\n': an inline table goes on with a comma, on one line",
		"a = \"\\q\"\n":          "line 1, column 7: unexpected 'q': an escape that is none",
		"{\"json\": 1}\n":        "line 1, column 1: unexpected '{': a key should stand here",
		"a = [" + "\"x\", # ]\n": "line 2, column 1: the file ends too early: a value should stand here",
		"a = nope\n":             "line 1, column 5: unexpected 'n': a value should stand here",
		"\xff = 1":               "line 1, column 1: this is not UTF-8",
		"a = '''x''''''\n":       "line 1, column 14: unexpected '\\'': the line should end here",
		"a.b = 1\na.\"b\" = 2\n": "line 2, column 1: the key a.b is there twice",
	} {
		_, err := ParseTOML([]byte(src))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
}

// A document with a bit of everything, of which every key is known.
func TestTOMLValues(t *testing.T) {
	src := bom + `# top
title = "a \"b\" \u00e9 \\"
lit = 'c:\x'
many = """
one \
   two"""
when = 1979-05-27 07:32:00Z
n = [ -1, 0x1F, 1_000.5e+3, inf, +nan, true ] # n
deep = [ [1, 2], [ { a = 1 }, { a = 2 } ], ]
a.'b c'."d" = 1
[x . y] # header
k = { one = 1, "two" = { three.four = 'z' } }
[[srv]]
name = "a"
[srv.sub]
z = 1
[[srv]]
name = "b"
[srv.sub]
z = 2
`
	want := []string{
		"title=a \"b\" é \\", `lit=c:\x`, "many=one two", "when=1979-05-27 07:32:00Z", "n=|-1|0x1F|1_000.5e+3|inf|+nan|true",
		"deep=||", "a.b c.d=1", "x.y.k.one=1", "x.y.k.two.three.four=z", "srv.name=a", "srv.sub.z=1", "srv.name=b", "srv.sub.z=2",
	}
	if got := facts(parseTOML(t, src)); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Whatever else a document holds, an edit changes nothing of it.
func TestEditsOfRandomTOML(t *testing.T) {
	pieces := []string{
		"# a comment with [box] and roots = [\n", "\n", "a%d = 1\n", "s%d = \"x # y\" # c\n", "l%d = [\n  1, # one\n  2,\n]\n",
		"[t%d]\n", "  in%d = { a = [1], b = 'c' }\n", "[[arr]]\n", "[t%d.'q.r']\r\n", "m%d = '''\n[box]\n'''\n",
	}
	boxes := []string{"", "[box]\n", "[box]\nnet = true\n", "[box]\nroots = []\n", "[box]\nroots = [\n\t'/a', # c\n]\n", "[box]\nroots = ['/a', '/b'] # c\n"}
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var b strings.Builder
		box := r.IntN(8)
		for i := range 8 {
			if i == box {
				b.WriteString(boxes[r.IntN(len(boxes))])
			}
			p := pieces[r.IntN(len(pieces))]
			if strings.Contains(p, "%d") {
				p = fmt.Sprintf(p, i)
			}
			b.WriteString(p)
		}
		src := b.String()
		doc := parseTOML(t, src)
		add, err := doc.AddElem("/r", "box", "roots")
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, src)
		}
		text := New([]byte(src))
		text.Apply(add)
		agree(t, text.Bytes())
		after := parseTOML(t, string(text.Bytes()))
		e := after.Find("box", "roots")
		if e == nil || e.Elems[len(e.Elems)-1].Text != "/r" {
			t.Fatalf("seed %d: %q\n%s", seed, facts(after), text.Bytes())
		}
		n := len(e.Elems) - 1
		if back, _ := Revert(text.Bytes(), text.Undo()); string(back) != src {
			t.Fatalf("seed %d: undone it is\n%s\nnot\n%s", seed, back, src)
		}
		text.Apply(after.RemoveElem(e, n))
		after = parseTOML(t, string(text.Bytes()))
		if doc.Find("box", "roots") == nil {
			text.Apply(after.RemoveKey(after.Find("box", "roots")))
			after = parseTOML(t, string(text.Bytes()))
		}
		agree(t, text.Bytes())
		if a, b := facts(doc), facts(after); !slices.Equal(a, b) {
			t.Fatalf("seed %d: %q became %q", seed, a, b)
		}
		if a, b := strings.Count(src, "#"), strings.Count(string(text.Bytes()), "#"); a != b {
			t.Fatalf("seed %d: %d comments became %d in\n%s", seed, a, b, text.Bytes())
		}
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("[box]\nroots = [ 'a' ] # c\r\n")
	f.Add("box = { roots = [] }\na.b = \"\"\"\n\"\"\"")
	f.Fuzz(func(t *testing.T, src string) {
		doc, err := ParseTOML([]byte(src))
		if err != nil {
			return
		}
		add, err := doc.AddElem("/r", "box", "roots")
		if err != nil {
			return
		}
		text := New([]byte(src))
		text.Apply(add)
		after, err := ParseTOML(text.Bytes())
		if err != nil {
			t.Fatalf("%q became %q: %v", src, text.Bytes(), err)
		}
		e := after.Find("box", "roots")
		if e == nil || !slices.ContainsFunc(e.Elems, func(el Elem) bool { return el.Text == "/r" }) {
			t.Fatalf("%q became %q", src, text.Bytes())
		}
		if back, err := Revert(text.Bytes(), text.Undo()); err != nil || string(back) != src {
			t.Fatalf("%q undone is %q", src, back)
		}
		text.Apply(after.RemoveElem(e, len(e.Elems)-1))
		if _, err := ParseTOML(text.Bytes()); err != nil {
			t.Fatalf("%q became %q: %v", src, text.Bytes(), err)
		}
	})
}
