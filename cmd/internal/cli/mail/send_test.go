package mail

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/wire"
)

// Who is written to, and what: names, and the words that are left.
func TestRecipients(t *testing.T) {
	s := newScope(t)
	for _, tt := range []struct{ words, names, text string }{
		{"bob hi", "bob", "hi"},
		{"bob", "bob", ""},
		{"bob,carol hi there", "bob,carol", "hi there"},
		{"all hi", "all", "hi"},
		{"bob carol", "bob", "carol"}, // the last word is the text, though it may be a name as well
		{"bob hello carol", "bob", "hello carol"},
	} {
		err := typed(t, sendCommand, strings.Fields(tt.words), func(c *cli.Context) error {
			names, words, err := recipients(c, s)
			if got := strings.Join(names, " "); err == nil && (got != tt.names || strings.Join(words, " ") != tt.text) {
				t.Errorf("send %s: to %q: %q", tt.words, got, words)
			}
			return err
		})
		if err != nil {
			t.Errorf("send %s: %v", tt.words, err)
		}
	}
}

// Names that are typed as several words are refused, and so is a text in their place.
func TestRecipientsRefused(t *testing.T) {
	s := newScope(t)
	for _, words := range [][]string{
		{"bob", "carol", "hi"}, {"bob,", "carol", "hi"}, {"bob", "and", "carol", "hi"}, {"bob carol", "hi"}, {"all tests pass"}, {"", "hi"}, nil,
	} {
		err := typed(t, sendCommand, words, func(c *cli.Context) error {
			_, _, err := recipients(c, s)
			return err
		})
		if refusal, isRefused := errors.AsType[*failure.Error](err); !isRefused || refusal.Exit != failure.ExitUsage {
			t.Errorf("send %q: %v", words, err)
		}
	}
}

// What the flags say of a message is in it. Its times count from when it is shown.
func TestNewMessage(t *testing.T) {
	s := newScope(t)
	old := deliverTo(t, s, "alice", wire.Message{Body: "old"}, "bob")
	later := time.Now().UTC().Add(24 * time.Hour).Truncate(time.Second)
	for flags, tt := range map[string]struct {
		at   time.Time
		want wire.Message
	}{
		"":                                {later, wire.Message{}},
		"--ack":                           {later, wire.Message{RequiresAck: true}},
		"--wait-ack":                      {later, wire.Message{RequiresAck: true}},
		"--wait-reply":                    {later, wire.Message{ReplyWanted: "yes"}},
		"--fyi":                           {later, wire.Message{ReplyWanted: "no"}},
		"--urgent":                        {later, wire.Message{Priority: "urgent"}},
		"--subject S":                     {later, wire.Message{Subject: "S"}},
		"--due 2h --expires 3h":           {later, wire.Message{DueAt: later.Add(2 * time.Hour), ExpiresAt: later.Add(3 * time.Hour)}},
		"--supersedes " + old.ID.Short(6): {later, wire.Message{Supersedes: old.ID, Thread: old.ID}},
		"--thread " + string(old.ID):      {later, wire.Message{Thread: old.ID}},
	} {
		err := typed(t, sendCommand, append([]string{"bob", "hi"}, strings.Fields(flags)...), func(c *cli.Context) error {
			m, err := newMessage(c, s, []string{"hi"}, tt.at)
			if err != nil {
				return err
			}
			tt.want.Body, tt.want.SentAt, tt.want.NotBefore = "hi", m.SentAt, later
			if diff := cmp.Diff(&tt.want, m); diff != "" {
				t.Errorf("send %s: %s", flags, diff)
			}
			return nil
		})
		if err != nil {
			t.Errorf("send %s: %v", flags, err)
		}
	}
}

// A reply that replaces another message stays in the thread of what it answers.
func TestReplySupersedes(t *testing.T) {
	s := newScope(t)
	old := deliverTo(t, s, "alice", wire.Message{Body: "old"}, "bob")
	must(t, typed(t, replyCommand, []string{"9f3a1c", "hi", "--supersedes", string(old.ID)}, func(c *cli.Context) error {
		m, err := newMessage(c, s, []string{"hi"}, time.Time{})
		if err == nil && (m.Supersedes != old.ID || m.Thread != "") {
			t.Errorf("it replaces %q, in the thread %q", m.Supersedes, m.Thread)
		}
		return err
	}))
}

// Flags that say nothing together are refused.
func TestSendRefuses(t *testing.T) {
	s := newScope(t)
	for flags, isTaken := range map[string]bool{
		"--wait-reply --timeout 1m":         true,
		"--wait-ack --wait-read":            true,
		"--in 1h --ack":                     true,
		"--wait-reply --in 1h":              false,
		"--wait-read --at 2099-01-01T00:00": false,
		"--fyi --wait-reply":                false,
		"--fyi --ack":                       false,
		"--fyi --due 1h":                    false,
		"--in 1h --at 14:00":                false,
		"--expires 0":                       false,
		"--message hello":                   false, // there is a text already
	} {
		err := typed(t, sendCommand, append([]string{"bob", "hi"}, strings.Fields(flags)...), func(c *cli.Context) error {
			return new(sendOptions).fill(c, s, []string{"hi"})
		})
		if (err == nil) != isTaken {
			t.Errorf("send %s: %v", flags, err)
		}
	}
}

// What is waited for, by its flags.
func TestSendWaits(t *testing.T) {
	s := newScope(t)
	for flags, want := range map[string]string{
		"": "", "--wait-reply": "reply", "--wait-ack --timeout 7m": "acked", "--wait-reply --wait-read --wait-ack": "read acked reply",
	} {
		must(t, typed(t, sendCommand, append([]string{"bob", "hi"}, strings.Fields(flags)...), func(c *cli.Context) error {
			var o sendOptions
			err := o.fill(c, s, []string{"hi"})
			if got := strings.Join(o.waits, " "); got != want || (o.timeout == 7*time.Minute) != strings.Contains(flags, "timeout") {
				t.Errorf("send %s: %q, %s", flags, got, o.timeout)
			}
			return err
		}))
	}
}

// A time to come is one: not now, not over, not nonsense.
func TestSendTime(t *testing.T) {
	for flags, want := range map[string]time.Duration{
		"": 0, "--in 2h": 2 * time.Hour, "--in 1d": 24 * time.Hour,
		"--in 0s": -1, "--at teatime": -1, "--at 2020-01-01T09:00": -1,
	} {
		err := typed(t, sendCommand, append([]string{"bob", "hi"}, strings.Fields(flags)...), func(c *cli.Context) error {
			at, err := sendTime(c)
			if err != nil {
				return err
			}
			if want == 0 && !at.IsZero() || want > 0 && time.Until(at).Round(time.Minute) != want {
				t.Errorf("send %s: %v", flags, at)
			}
			return nil
		})
		if (err != nil) != (want < 0) {
			t.Errorf("send %s: %v", flags, err)
		}
	}
}
