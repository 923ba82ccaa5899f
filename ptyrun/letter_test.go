package ptyrun

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/testframe"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/wire"
)

// frames matches what begins and ends typed mail.
var frames = regexp.MustCompile(`\[/?atm\b[^\]]*\]`)

// Whatever senders write, a model that knows only the rule finds the messages that were typed, and where they end, also
// where a program gets all of it as one line.
func TestFrames(t *testing.T) {
	opencode, _ := driver.Named("opencode") // which acts on nothing in a text
	testround.Check(t, 100, func(t *rapid.T) {
		hostile := testframe.Hostile()
		var items []*maildir.Item
		for i := range rapid.IntRange(1, 3).Draw(t, "messages") {
			items = append(items, &maildir.Item{Message: &wire.Message{
				ID: wire.ID(fmt.Sprintf("01900000-0000-7000-8000-0000000000a%d", i)), From: wire.Address{Agent: "mallory", Team: "main"}, SentAt: time.Now(),
				Subject: hostile.Draw(t, "subject"), Type: hostile.Draw(t, "type"), Body: hostile.Draw(t, "body"),
			}})
		}
		l := &letter.Renderer{Now: time.Now(), Team: "main", Digits: letter.ShortLength(idsOf(items))}
		text := Clean((&runner{follower: noFollower{}}).letterText(items, nil, l, opencode))
		got, ours := testframe.Parse(text, false)
		if len(got) != len(items) || len(ours) != 1 || ours[0] != letter.End || !strings.HasSuffix(text, "\n"+letter.End) {
			t.Fatalf("%d messages are %d, with %q: %q", len(items), len(got), ours, text)
		}
		for i, it := range items {
			want := strings.TrimRight(letter.EscapeMail(l.Text(it.Message)), "\n")
			if found := strings.TrimRight(strings.Join(got[i].Text, "\n"), "\n"); found != want || got[i].ID != l.Short(it.ID) {
				t.Fatalf("%s %q was sent as %q", got[i].ID, found, want)
			} else if testframe.Vendors.MatchString(found) {
				t.Fatalf("%q comes through in %q", testframe.Vendors.FindString(found), found)
			}
		}
		line := keysOf(text, false, false)
		all := frames.FindAllString(line, -1)
		if len(all) != len(items)+1 || all[len(items)] != letter.End || strings.Contains(line, "\n") {
			t.Fatalf("in one line: %q of %q", all, line)
		}
	})
}

// A text goes in as a paste, or line by line if the program distrusts a long one, else as it is if the program takes it so, else as one line.
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
		p := &terminal{emulator: screen.New(80, 24, 0)}
		p.driver, _ = driver.Named(c.driver)
		p.emulator.Write([]byte(c.output))
		if got := string(p.keysOf("a\nb")); got != c.want || p.takesText() != c.takes {
			t.Errorf("%s after %q: %q, takes a text %v", c.driver, c.output, got, p.takesText())
		}
	}
}
