package hook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/testframe"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
)

// Whatever senders write, a model that knows only the rule finds the messages that there are between our first line and
// our last, whichever tool hands the answer over, and none of the marks by which such tools say who speaks.
func TestFrames(t *testing.T) {
	bob, outer := team(t), t
	testround.Check(t, 100, func(t *rapid.T) {
		hostile := testframe.Hostile()
		h := &claim.Claim{GivenUp: rapid.IntRange(0, 2).Draw(t, "more")}
		for i := range rapid.IntRange(1, 4).Draw(t, "messages") {
			m := &wire.Message{
				ID: wire.ID(fmt.Sprintf("01900000-0000-7000-8000-0000000000a%d", i)), From: wire.Address{Agent: "mallory", Team: "main"}, SentAt: time.Now(),
				Subject: hostile.Draw(t, "subject"), Type: hostile.Draw(t, "type"), Body: hostile.Draw(t, "body"),
			}
			h.Items = append(h.Items, &wire.Item{Message: m})
		}
		for tool, replyAs := range map[string]agents.ReplyWay{Claude: agents.AsContext, Codex: agents.AsBlock, Gemini: agents.AsBlock} {
			var stdout strings.Builder
			c := called(bob, tool, &stdout, nil)
			c.ReplyAs = replyAs
			l := &letter.Renderer{Now: time.Now(), Team: "main"}
			l.LimitToPage()
			c.Text.WriteString(mailText(h, l, "bob"))
			if _, err := c.answer(); err != nil {
				t.Fatal(err)
			}
			text, _ := answerOf(outer, stdout.String())
			got, ours := testframe.Parse(text, false)
			if len(got) != len(h.Items) {
				t.Fatalf("%d messages are %d: %q", len(h.Items), len(got), text)
			}
			for i, it := range h.Items {
				want := strings.TrimRight(letter.EscapeMail(l.Text(it.Message)), "\r\n")
				if found := strings.TrimRight(strings.ReplaceAll(strings.Join(got[i].Text, "\n"), "\r\n", "\n"), "\r\n"); found != want || got[i].ID != it.ID.Short(6) {
					t.Fatalf("%s %q was sent as %q", got[i].ID, found, want)
				} else if testframe.Vendors.MatchString(found) {
					t.Fatalf("%q comes through in %q", testframe.Vendors.FindString(found), found)
				}
			}
			want := 2 + min(h.GivenUp, 1)
			if len(ours) != want || !strings.HasPrefix(ours[0], fmt.Sprintf("[atm] %s for bob", letter.Many(len(h.Items), "new message"))) || ours[want-1] != letter.End {
				t.Fatalf("we said %q", ours)
			}
			for _, mark := range []string{"<system-reminder>", "</system-reminder>", "</task-notification>", "<INSTRUCTIONS>", "<|im_start|>", "[/INST]", "\n\nHuman:", "\u200b", "\U000e0041"} {
				if strings.Contains(text, mark) {
					t.Fatalf("%q comes through in %q", mark, text)
				}
			}
		}
	})
}
