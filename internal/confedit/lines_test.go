package confedit

import "testing"

func TestLines(t *testing.T) {
	for _, c := range []struct{ src, added, removed string }{
		{"", "/x\n", ""},
		{"a\n", "a\n/x\n", "a\n"},
		{"a", "a\n/x\n", "a\n"},
		{"a\r\n", "a\r\n/x\r\n", "a\r\n"},
		{bom + "/x\nb", bom + "/x\nb", bom + "b"},
		{"/x\n/y\n/x", "/x\n/y\n/x", "/y\n"},
		{"!/x\n#/x\n", "!/x\n#/x\n/x\n", "!/x\n#/x\n"},
	} {
		text := New([]byte(c.src))
		text.Apply(AddLine(text.Bytes(), "/x"))
		if got := string(text.Bytes()); got != c.added {
			t.Errorf("%q with it: %q, want %q", c.src, got, c.added)
		}
		if back, _ := Revert(text.Bytes(), text.Undo()); string(back) != c.src {
			t.Errorf("%q undone is %q", c.src, back)
		}
		text.Apply(RemoveLine(text.Bytes(), "/x"))
		if got := string(text.Bytes()); got != c.removed {
			t.Errorf("%q without it: %q, want %q", c.src, got, c.removed)
		}
	}
}

func TestBlock(t *testing.T) {
	b := Block{Begin: "# begin", End: "# end"}
	set := func(src, body string) string {
		text := New([]byte(src))
		text.Apply(b.Set(text.Bytes(), body))
		return string(text.Bytes())
	}
	remove := func(src string) string {
		text := New([]byte(src))
		text.Apply(b.Remove(text.Bytes()))
		return string(text.Bytes())
	}
	one := set("", "one\n")
	if one != "# begin\none\n# end\n" {
		t.Errorf("new: %q", one)
	}
	if got := set(one, "one\n"); got != one {
		t.Errorf("again: %q", got)
	}
	mine := "before\n" + one + "after"
	if got, want := set(mine, "two\n"), "before\n# begin\ntwo\n# end\nafter"; got != want {
		t.Errorf("changed: %q, want %q", got, want)
	}
	if got := remove(mine); got != "before\nafter" {
		t.Errorf("removed: %q", got)
	}
	if got := set("before", "one\n"); got != "before\n"+one {
		t.Errorf("behind what was there: %q", got)
	}
	if got := set("a\r\n", "one\n"); got != "a\r\n# begin\r\none\r\n# end\r\n" {
		t.Errorf("CRLF: %q", got)
	}
	if got := remove("before\n# begin\nlost its end\n"); got != "before\n" {
		t.Errorf("without an end: %q", got)
	}
	if got := remove("none"); got != "none" {
		t.Errorf("without a block: %q", got)
	}
}
