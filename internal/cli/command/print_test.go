package command

import (
	"strings"
	"testing"
)

func TestCheckText(t *testing.T) {
	for _, text := range []string{"", " \n", "a\x00b", "\xff", strings.Repeat("x", maxText+1)} {
		if CheckText(text) == nil {
			t.Errorf("%.20q is taken", text)
		}
	}
	if text, err := ReadText(strings.NewReader("a\n\r\n")); text != "a\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestJSONNeverSteersATerminal(t *testing.T) {
	doc, err := JSON("<a>\x1b[2J\u202e\u009b\x7f")
	if err != nil || string(doc) != `"<a>\u001b[2J\u202e\u009b\u007f"`+"\n" {
		t.Errorf("%s %v", doc, err)
	}
}
