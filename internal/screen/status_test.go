package screen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestParseReport(t *testing.T) {
	id := strings.Repeat("/abcdefghijklmno", 8)[1:]
	for text, want := range map[string]Report{
		"state=working:app=codex":                         {State: "working", App: "codex"},
		"app=codex:state=blocked:kind=permission":         {State: "blocked", Kind: "permission", App: "codex"},
		"state=blocked:kind=another":                      {State: "blocked"},
		"state=done:kind=permission:progress=7:new=thing": {State: "done"},
		"state=working:progress=100:id=" + id:             {State: "working", Progress: 100, HasProgress: true, ID: id},
		"state=idle:title=4pyz:msg=YQpi":                  {State: "idle", Title: "✳", Message: "ab"},
		"":                                                {}, "?": {}, "state=": {}, "state=new": {}, "state=idle:state=idle": {}, "app=codex": {}, "state=idle:x": {},
		"state=idle:app=a b": {}, "state=idle:app=": {}, "state=idle:app=" + strings.Repeat("a", 33): {},
		"state=idle:id=" + id + "/": {}, "state=idle:id=a//b": {}, "state=idle:id=1/2/3/4/5/6/7/8/9": {},
		"state=idle:id=" + strings.Repeat("abcdefghijklmnopqrstuvwxyzabcde/", 4) + "a": {},
		"state=working:progress=101": {}, "state=working:progress=-1": {}, "state=working:progress=1.5": {},
		"state=idle:msg=!": {}, "state=idle:msg=/w==": {}, "state=idle:title=" + strings.Repeat("YWFh", 65): {},
		"state=idle:msg=" + strings.Repeat("YWFh", 683): {},
	} {
		r, ok := ParseReport(text)
		if r != want || ok != (want != Report{}) {
			t.Errorf("%.60q: %+v %v", text, r, ok)
		}
	}
}

func TestStatus(t *testing.T) {
	s := New(80, 24, 10)
	say := func(text string) { s.Write([]byte("\x1b]7501;" + text + "\a")) }
	expect := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, r := range s.status {
			got = append(got, r.ID+" "+string(r.State))
		}
		if !reflect.DeepEqual(got, append([]string{}, want...)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	say("state=working:id=a/b:app=x")
	say("state=done:id=a:app=x")
	say("state=idle:id=ab:app=x")
	say("state=blocked:app=x")
	expect(" blocked", "a done", "a/b working", "ab idle")
	say("state=error:app=x")
	expect(" error", "a done", "a/b working", "ab idle")
	say("state=clear:id=a")
	expect(" error", "ab idle")
	say("state=working:id=c:app=x")
	say("state=blocked:id=d:app=x")
	s.Write([]byte("\x1b]133;A\a"))
	expect(" error", "ab idle")
	say("state=clear")
	expect()
	s.Write([]byte("\x1b]7501;?\a"))
	if got := string(s.Replies()); got != "\x1b]7501;?\x1b\\" {
		t.Errorf("%q", got)
	}
}

// What the program says itself is in its root record, but a part of it that waits for a person makes it wait.
func TestProgram(t *testing.T) {
	for reports, want := range map[string]string{
		"": "", "state=idle:app=other": "", "state=idle:app=x state=working:app=x:id=a": "idle",
		"state=working:app=x state=blocked:app=x:id=a": "blocked", "state=done:app=x:id=a state=working:app=x:id=b": "working",
		"state=blocked:app=other:id=a state=done:app=x:id=b": "done",
	} {
		s := New(80, 24, 10)
		for text := range strings.FieldsSeq(reports) {
			s.Write([]byte("\x1b]7501;" + text + "\a"))
		}
		if r, ok := s.status.Program("x"); string(r.State) != want || ok != (want != "") {
			t.Errorf("%s: %+v", reports, r)
		}
	}
}

// Neither a sequence without an end nor a flood of records grows, and both are noticed.
func TestStatusLimits(t *testing.T) {
	s := New(80, 24, 10)
	s.Write([]byte("\x1b]7501;state=working:app=x\a\x1b]7501;state=idle:app=x:more="))
	for range 256 {
		s.Write(bytes.Repeat([]byte("a"), 4<<10))
		if len(s.partialString) > 5<<10 {
			t.Fatalf("%d bytes are kept", len(s.partialString))
		}
	}
	s.Write([]byte("\atext"))
	status, hasExcess := s.Status()
	if len(status) != 1 || status[0].State != "working" || !hasExcess || s.Line(0) != "text" {
		t.Errorf("%v, excess: %v, %q", status, hasExcess, s.Line(0))
	}
	s = New(80, 24, 10)
	for i := range 10_000 {
		fmt.Fprintf(s, "\x1b]7501;state=working:id=%d\a", i)
	}
	if status, hasExcess := s.Status(); len(status) != maxRecords || !hasExcess {
		t.Errorf("%d records, excess: %v", len(status), hasExcess)
	}
	fits := "state=idle:more="
	fits += strings.Repeat("a", maxReport-len(statusPrefix+fits+"\a"))
	for _, c := range []struct {
		text string
		want ansi.ProgramState
	}{{fits, "idle"}, {fits + "a", "working"}} {
		s := New(80, 24, 10)
		s.Write([]byte("\x1b]7501;state=working\a\x1b]7501;" + c.text + "\a"))
		if s.status[0].State != c.want || s.hasExcess != (c.want == "working") {
			t.Errorf("%d bytes: %v", len(c.text), s.status)
		}
	}
}

// A status sequence of any bytes leaves records within the limits.
func FuzzStatus(f *testing.F) {
	files, _ := filepath.Glob("../../testdata/screens/codex-*.bin")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for seq := range bytes.SplitSeq(data, []byte("\x1b]7501;")) {
			text, _, _ := bytes.Cut(seq, []byte("\x1b"))
			f.Add(string(text))
		}
	}
	f.Add("state=working:id=a/b:progress=7:title=4pyz:msg=YQpi\a\x1b]7501;state=clear:id=a")
	f.Fuzz(func(t *testing.T, text string) {
		s := New(20, 5, 10)
		s.Write([]byte("\x1b]7501;" + text + "\a"))
		status, _ := s.Status()
		for _, r := range status {
			isInLimits := (r.ID == "" || isID(r.ID)) && len(r.Title) <= maxTitle && len(r.Message) <= maxMessage && r.Progress <= 100
			if !isInLimits {
				t.Fatalf("%+v", r)
			}
		}
	})
}
