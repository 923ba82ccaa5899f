package terminal

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/questions"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/record"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
)

// A terminal's own reports do not count as a person's typing, however long a text takes to type.
func TestReportIsNoPerson(t *testing.T) {
	p := &Terminal{
		r: &run.Run{Loop: loop.New(t.Context(), nil, time.Now)}, input: make(chan write, 2),
		given: &run.Text{State: delivery.Put}, typing: &typing{startedAt: time.Now().Add(-maxKeyHold)},
	}
	if p.PassKeys([]byte("\x1b[I"), false); p.typing.isMixed || len(p.input) != 1 {
		t.Error("a report of focus is mixed with the text")
	}
	if p.PassKeys([]byte("x"), true); !p.typing.isMixed {
		t.Error("a person's key is not")
	}
}

// A turn of ours of which no work was seen counts as over only after a longer time.
func TestUnstartedIsHeldLonger(t *testing.T) {
	t.Parallel()
	claude, _ := driver.Named("claude")
	for worked, want := range map[bool]time.Duration{false: time.Minute, true: time.Second} {
		p := &Terminal{r: &run.Run{Timing: &run.Timing{Idle: time.Second, Unstarted: time.Minute}}, driver: claude, turn: turn{isOurs: true, hasWorked: worked}}
		p.reading.Activity = reducer.Idle
		if got := p.hold(); got != want {
			t.Errorf("worked %v: %s, not %s", worked, got, want)
		}
	}
}

// The keys that clear a draft are not pressed when a dialog has come up whose output waits for the loop, nor when the
// draft has changed.
func TestClearedDraftIsReadAgain(t *testing.T) {
	const rule = "\x1b[2J\x1b[H────────────────────────────────────────\r\n"
	claude, _ := driver.Named("claude")
	for output, want := range map[string]bool{
		"": true,
		rule + " Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel": false,
		"!": false,
	} {
		r := &run.Run{Loop: loop.New(t.Context(), nil, time.Now), Timing: &run.Timing{}}
		p := &Terminal{r: r, emulator: screen.New(40, 10, screen.Scrollback), driver: claude, o: Options{Output: func([]byte) {}}, output: loop.NewFeed[[]byte](1), input: make(chan write, 8)}
		p.emulator.Write([]byte(rule + "❯ rebase\r\n" + strings.TrimPrefix(rule, "\x1b[2J\x1b[H") + "\x1b[2;9H"))
		p.readScreen(r.Now())
		if p.reading.Draft != "rebase" {
			t.Fatalf("the draft is %q", p.reading.Draft)
		}
		var err error
		if r.Recording, err = record.Create(record.Options{Path: t.TempDir() + "/screen.cast", Cols: 40, Rows: 10}); err != nil {
			t.Fatal(err)
		}
		p.output.Send([]byte(output))
		if got := p.eraseDraft(); got != want || (len(p.input) > 0) != want {
			t.Errorf("after %q: erased %v with %d writes; it shows %+v", output, got, len(p.input), p.reading)
		}
		r.Recording.Close()
	}
}

// Whatever a text contains, it cannot end a paste, press a key or send a sequence; nor can the next one together with it.
func FuzzKeysOf(f *testing.F) {
	for _, s := range []string{pasteOff, "\x1b", "[201~", "\x9b201~", "\u009b201~", "\r\n", "a\rb", "\x00\x7f\x03", "\xff\xc2", "\u2028\u0085", "\x1b\x1b[201~[201~"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		sent := keysOf(letter.Typable(a), true, false) + keysOf(letter.Typable(b), true, false)
		texts := strings.ReplaceAll(strings.ReplaceAll(sent, pasteOn, ""), pasteOff, "")
		isKey := func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }
		if strings.Count(sent, pasteOn) != 2 || strings.Count(sent, pasteOff) != 2 || strings.ContainsFunc(texts, isKey) || !utf8.ValidString(sent) {
			t.Errorf("%q and %q are sent as %q", a, b, sent)
		}
		if line := keysOf(letter.Typable(a), false, false); strings.ContainsAny(line, "\r\n") {
			t.Errorf("%q is sent as %q", a, line)
		}
	})
}

// A text goes in as a paste, or line by line if the program distrusts a long one, else as it is if the program takes it so,
// else as one line.
func TestKeysOfProgram(t *testing.T) {
	for _, c := range []struct {
		driver, output string
		takes          bool
		want           string
	}{
		{"gemini", "", false, "a b"},
		{"gemini", "\x1b[?2004h", true, pasteOn + "a\nb" + pasteOff},
		{"claude", "\x1b[?2004h", true, pasteOn + "a\n" + pasteOff + pasteOn + "b" + pasteOff},
		{"continue", "", true, "a\nb"},
		{"continue", "\x1b[?2004h", true, pasteOn + "a\nb" + pasteOff},
	} {
		p := &Terminal{emulator: screen.New(80, 24, 0)}
		p.driver, _ = driver.Named(c.driver)
		p.emulator.Write([]byte(c.output))
		if got := string(p.keysOf("a\nb")); got != c.want || p.takesText() != c.takes {
			t.Errorf("%s after %q: %q, takes a text %v", c.driver, c.output, got, p.takesText())
		}
	}
}

// What a person has pasted behind our paste, whose keys were held too long, is theirs.
func TestTakeBackBesidePaste(t *testing.T) {
	rule := "────────────────────────────────────────────────────────────\r\n"
	claude, _ := driver.Named("claude")
	r := &run.Run{Loop: loop.New(t.Context(), nil, time.Now), Timing: &run.Timing{}, Questions: questions.Questions{}}
	p := &Terminal{r: r, emulator: screen.New(100, 10, screen.Scrollback), driver: claude, o: Options{Output: func([]byte) {}}, output: loop.NewFeed[[]byte](1), input: make(chan write, 8)}
	p.emulator.Write([]byte("\x1b[2J\x1b[H" + rule + "❯ [Pasted text #1 +12 lines] and mine [Pasted text #2 +9 lines]\r\n" + strings.TrimSpace(rule) + "\x1b[2;64H"))
	p.readScreen(r.Now())
	p.given = &run.Text{State: delivery.Put, Words: "our text"}
	p.typing = &typing{draft: "our text", isMixed: true, startedAt: time.Now()}
	e := p.TakeBack(p.given)
	if len(p.input) > 0 {
		t.Errorf("%s: %d keys were typed over the person's words", e, len(p.input))
	}
}
