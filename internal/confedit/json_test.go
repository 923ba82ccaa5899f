package confedit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var jsonc = Dialect{Comments: true, TrailingCommas: true}

// edited applies one edit to a document.
func edited(t testing.TB, src string, d Dialect, edit func(*JSON) Edit) string {
	t.Helper()
	doc, err := ParseJSON([]byte(src), d)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	text := New([]byte(src))
	text.Apply(edit(doc))
	if back, err := Revert(text.Bytes(), text.Undo()); err != nil || string(back) != src {
		t.Errorf("%q: undone it is %q, %v", src, back, err)
	}
	if _, err := ParseJSON(text.Bytes(), d); err != nil {
		t.Errorf("%q became %q: %v", src, text.Bytes(), err)
	}
	return string(text.Bytes())
}

func TestSetAndAppend(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"nothing yet", "{}\n", "{\n  \"k\": \"v\"\n}\n"},
		{"two spaces", "{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"k\": \"v\"\n}"},
		{"a tab", "{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"k\": \"v\"\n}\n"},
		{"CRLF", "{\r\n    \"a\": 1\r\n}\r\n", "{\r\n    \"a\": 1,\r\n    \"k\": \"v\"\r\n}\r\n"},
		{"a byte order mark", bom + "{\n  \"a\": 1\n}", bom + "{\n  \"a\": 1,\n  \"k\": \"v\"\n}"},
		{"one line", `{"a": 1}`, `{"a": 1, "k": "v"}`},
		{"one tight line", `{"a":1}`, `{"a":1,"k":"v"}`},
		{"a comment behind", "{\n  \"a\": 1 // one\n}", "{\n  \"a\": 1, // one\n  \"k\": \"v\"\n}"},
		{"a comma too many", "{\n  \"a\": 1, // one\n  // end\n}", "{\n  \"a\": 1, // one\n  // end\n  \"k\": \"v\",\n}"},
		{"only a comment", "{\n  // nothing\n}", "{\n  // nothing\n  \"k\": \"v\"\n}"},
		{"a block comment", `{"a": 1 /* one */}`, `{"a": 1, /* one */ "k": "v"}`},
		{"there already", "{\"k\": [1, 2], \"z\": 0}", "{\"k\": \"v\", \"z\": 0}"},
		{"there twice", "{\"k\": 1, \"k\": 2}", "{\"k\": 1, \"k\": \"v\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := edited(t, c.src, jsonc, func(d *JSON) Edit { return d.Set(d.Root, "k", "v") })
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	got := edited(t, "{\n  \"list\": [\n    1\n  ],\n  \"flat\": [1]\n}", Dialect{}, func(d *JSON) Edit {
		return d.Append(d.Root.Get("list"), Map{{"hooks", List{Map{{"n", 5}, {"on", true}}}}})
	})
	want := `{
  "list": [
    1,
    {
      "hooks": [
        {
          "n": 5,
          "on": true
        }
      ]
    }
  ],
  "flat": [1]
}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct {
		src  string
		i    int
		want string
	}{
		{"[1]", 0, "[]"},
		{"[\n  1\n]", 0, "[]"},
		{"[1, 2, 3]", 0, "[2, 3]"},
		{"[1, 2, 3]", 1, "[1, 3]"},
		{"[1, 2, 3]", 2, "[1, 2]"},
		{"[1,2,3]", 1, "[1,3]"},
		{"[\n  1,\n  2\n]", 0, "[\n  2\n]"},
		{"[\n  1,\n  2\n]", 1, "[\n  1\n]"},
		{"[\n  1, // one\n  2 // two\n]", 1, "[\n  1 // one\n   // two\n]"},
		{"[\n  1, // one\n  2, // two\n  3\n]", 1, "[\n  1, // one\n  // two\n  3\n]"},
		{"[\n  1,\n  2,\n]", 1, "[\n  1,\n]"},
		{"[ // first\n  1, 2\n]", 0, "[ // first\n  2\n]"},
		{"[1, // one\n 2 ]", 1, "[1 // one\n  ]"},
		{"[/* a */ 1 /* b */, /* c */ 2]", 0, "[/* a */ /* b */ /* c */ 2]"},
		{"[\n  // why\n  1\n]", 0, "[\n  // why\n]"},
	} {
		got := edited(t, c.src, jsonc, func(d *JSON) Edit { return d.Remove(d.Root, c.i) })
		if got != c.want {
			t.Errorf("%q without %d: %q, want %q", c.src, c.i, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for src, want := range map[string]string{
		"":                          "line 1, column 1: the file ends too early",
		"{\"a\": 1,}":               "line 1, column 9: unexpected '}'",
		"{\n // no\n}":              "line 2, column 2: a comment, which this program does not read",
		"{\"a\": 01}":               "line 1, column 7: not a number: 01",
		"{\"a\" 1}":                 "line 1, column 6: unexpected '1'",
		"{} {}":                     "line 1, column 4: unexpected '{'",
		"{\"a\": \"\n\"}":           "line 1, column 8: a string that is not closed",
		"{\"\xff\": 1}":             "line 1, column 3: this is not UTF-8",
		"{\"a\": \"\\q\"}":          "line 1, column 7: a string with a bad escape",
		"{\"a\": tru}":              "line 1, column 7: unexpected 't'",
		"\xff\xfe{\x00}\x00":        "line 1, column 1: this is not UTF-8",
		strings.Repeat("[", 300):    "line 1, column 202: nested more than 200 deep",
		"{\"a\": \"b\" /* open */":  "line 1, column 11: a comment, which this program does not read",
		"{\r\n\"a\": {\"b\":}\r\n}": "line 2, column 11: unexpected '}'",
	} {
		_, err := ParseJSON([]byte(src), Dialect{})
		if err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", src, err, want)
		}
	}
}

// plain is a document as encoding/json sees it, members in order.
func plain(v *Value, src []byte) any {
	switch v.Kind {
	case Object:
		out := [][2]any{}
		for _, m := range v.Members {
			out = append(out, [2]any{m.Key, plain(m.Value, src)})
		}
		return out
	case Array:
		out := []any{}
		for _, e := range v.Elems {
			out = append(out, plain(e, src))
		}
		return out
	case String:
		return "s" + v.Text
	}
	return string(src[v.Start:v.End])
}

// A writer makes documents of every look.
type writer struct {
	r   *rand.Rand
	d   Dialect
	nl  string
	out strings.Builder
}

func (w *writer) space() {
	for range w.r.IntN(3) {
		switch n := w.r.IntN(8); {
		case n == 0 && w.d.Comments:
			fmt.Fprintf(&w.out, "// c%d, \"]}%s", w.r.IntN(100), w.nl)
		case n == 1 && w.d.Comments:
			fmt.Fprintf(&w.out, "/* b%d ,]} */", w.r.IntN(100))
		case n < 4:
			w.out.WriteString(w.nl + strings.Repeat([]string{" ", "\t"}[w.r.IntN(2)], w.r.IntN(5)))
		default:
			w.out.WriteString(" ")
		}
	}
}

func (w *writer) value(depth int) {
	n := w.r.IntN(7)
	if depth == 0 {
		n = 6
	} else if depth > 3 {
		n = w.r.IntN(4)
	}
	switch n {
	case 0:
		fmt.Fprint(&w.out, w.r.IntN(2000)-1000)
	case 1:
		w.out.WriteString([]string{"true", "false", "null", "1e-3"}[w.r.IntN(4)])
	case 2, 3:
		w.out.WriteString([]string{`"plain"`, `"// no comment"`, `"é\n\"}]"`, `""`}[w.r.IntN(4)])
	case 4, 5:
		w.children("[]", func() { w.value(depth + 1) })
	case 6:
		w.children("{}", func() {
			fmt.Fprintf(&w.out, `"k%d"`, w.r.IntN(6))
			w.space()
			w.out.WriteString(":")
			w.space()
			w.value(depth + 1)
		})
	}
}

func (w *writer) children(brackets string, child func()) {
	w.out.WriteString(brackets[:1])
	w.space()
	for i, n := 0, w.r.IntN(4); i < n; i++ {
		child()
		w.space()
		if i < n-1 || w.d.TrailingCommas && w.r.IntN(4) == 0 {
			w.out.WriteString(",")
			w.space()
		}
	}
	w.out.WriteString(brackets[1:])
}

func randomJSON(r *rand.Rand, d Dialect) string {
	w := &writer{r: r, d: d, nl: []string{"\n", "\r\n"}[r.IntN(2)]}
	if r.IntN(5) == 0 {
		w.out.WriteString(bom)
	}
	w.space()
	w.value(0)
	w.space()
	return w.out.String()
}

// containers are all lists and objects of a document.
func containers(v *Value) []*Value {
	var out []*Value
	if v.Kind == Array || v.Kind == Object {
		out = append(out, v)
	}
	for _, e := range v.Elems {
		out = append(out, containers(e)...)
	}
	for _, m := range v.Members {
		out = append(out, containers(m.Value)...)
	}
	return out
}

// What an edit means, on documents of every look: one value more, or one less,
// nothing else; comments all kept; undone, the same bytes.
func TestEditsOfRandomDocuments(t *testing.T) {
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := []Dialect{{}, {Comments: true}, jsonc}[r.IntN(3)]
		src := randomJSON(r, d)
		doc, err := ParseJSON([]byte(src), d)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		all := containers(doc.Root)
		v := all[r.IntN(len(all))]
		want := plain(doc.Root, doc.src)
		n := len(v.Elems) + len(v.Members)
		kept := comments(src)
		what, change := "add", func(d *JSON) Edit {
			if v.Kind == Array {
				return d.Append(v, Map{{"new", List{"x", 1}}})
			}
			return d.insert(v, func(indent string, spread bool) string {
				return d.render(Map{{"new", Map{{"x", 1}}}}, indent, spread, true)
			})
		}
		if n > 0 && r.IntN(2) == 0 {
			i := r.IntN(n)
			start, end := doc.child(v, i)
			kept = append(comments(src[:start]), comments(src[end:])...)
			what, change = fmt.Sprint("remove ", i), func(d *JSON) Edit { return d.Remove(v, i) }
		}
		text := New([]byte(src))
		text.Apply(change(doc))
		after, err := ParseJSON(text.Bytes(), d)
		if err != nil {
			t.Fatalf("seed %d, %s in\n%s\nbecame\n%s\n%v", seed, what, src, text.Bytes(), err)
		}
		if now := comments(string(text.Bytes())); !slices.Equal(kept, now) {
			t.Fatalf("seed %d, %s: comments %q became %q in\n%s\nfrom\n%s", seed, what, kept, now, text.Bytes(), src)
		}
		if back, err := Revert(text.Bytes(), text.Undo()); err != nil || string(back) != src {
			t.Fatalf("seed %d, %s: undone it is\n%s\nnot\n%s", seed, what, back, src)
		}
		if i, ok := strings.CutPrefix(what, "remove "); ok {
			n, _ := strconv.Atoi(i)
			if v.Kind == Array {
				v.Elems = slices.Delete(v.Elems, n, n+1)
			} else {
				v.Members = slices.Delete(v.Members, n, n+1)
			}
			if !reflect.DeepEqual(plain(after.Root, text.Bytes()), plain(doc.Root, []byte(src))) {
				t.Fatalf("seed %d, %s: got\n%s\nfrom\n%s", seed, what, text.Bytes(), src)
			}
		}
		// Taking away again what was added leaves what was there.
		if what == "add" {
			now := containers(after.Root)
			var with *Value
			for i, c := range all {
				if c == v {
					with = now[i]
				}
			}
			again := New(text.Bytes())
			again.Apply(after.Remove(with, n))
			less, err := ParseJSON(again.Bytes(), d)
			if err != nil || !reflect.DeepEqual(plain(less.Root, again.Bytes()), want) {
				t.Fatalf("seed %d: %v: added and removed:\n%s\nfrom\n%s", seed, err, again.Bytes(), src)
			}
		}
	}
}

// comments are those of a document, found without the parser.
func comments(src string) []string {
	var out []string
	for i := 0; i < len(src); i++ {
		switch {
		case src[i] == '"':
			for i++; src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case strings.HasPrefix(src[i:], "//"):
			end := i + strings.IndexAny(src[i:]+"\n", "\r\n")
			out = append(out, strings.TrimRight(src[i:end], " \t"))
			i = end
		case strings.HasPrefix(src[i:], "/*"):
			end := i + strings.Index(src[i:], "*/") + 2
			out = append(out, src[i:end])
			i = end - 1
		}
	}
	return out
}

func FuzzJSON(f *testing.F) {
	f.Add("{\"a\": [1, {\"b\": null}]} // x")
	f.Add(bom + "{\r\n\t\"a\": \"\\u00e9\",\r\n}")
	f.Fuzz(func(t *testing.T, src string) {
		strict, err := ParseJSON([]byte(src), Dialect{})
		if ok := json.Valid([]byte(strings.TrimPrefix(src, bom))); ok && err != nil {
			if !strings.Contains(err.Error(), "UTF-8") && !strings.Contains(err.Error(), "deep") {
				t.Errorf("%q is JSON: %v", src, err)
			}
		} else if !ok && err == nil {
			t.Errorf("%q is no JSON", src)
		}
		_ = strict
		doc, err := ParseJSON([]byte(src), jsonc)
		if err != nil || doc.Root.Kind != Object {
			return
		}
		text := New([]byte(src))
		text.Apply(doc.Set(doc.Root, "fuzz", Map{{"x", List{1, "two"}}}))
		after, err := ParseJSON(text.Bytes(), jsonc)
		if err != nil {
			t.Fatalf("%q became %q: %v", src, text.Bytes(), err)
		}
		text.Apply(after.Remove(after.Root, after.Root.index("fuzz")))
		if _, err := ParseJSON(text.Bytes(), jsonc); err != nil {
			t.Fatalf("%q became %q: %v", src, text.Bytes(), err)
		}
		if back, err := Revert(text.Bytes(), text.Undo()); err != nil || string(back) != src {
			t.Fatalf("%q undone is %q", src, back)
		}
	})
}
