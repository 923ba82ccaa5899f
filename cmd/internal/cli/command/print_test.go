package command

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadText(t *testing.T) {
	if text, err := ReadText(strings.NewReader("a\n\r\n")); text != "a\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// JSON shows what is hidden, and says exactly what it was.
func TestJSONNeverSteersATerminal(t *testing.T) {
	const text = "<a>\x1b[2J\u202e\u009b\x7f\u200b\U000e0041é漢😀"
	doc, err := JSON(text)
	if err != nil || string(doc) != `"<a>\u001b[2J\u202e\u009b\u007f\u200b\udb40\udc41é漢😀"`+"\n" {
		t.Errorf("%s %v", doc, err)
	}
	var back string
	if err := json.Unmarshal(doc, &back); err != nil || back != text {
		t.Errorf("%q %v", back, err)
	}
}
