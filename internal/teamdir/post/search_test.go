package post

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// A conversation whose first message has an id from a clock that was three days ahead is found in the archive, by every
// way to it, today and a week later.
func TestClockAhead(t *testing.T) {
	for _, daysLater := range []int{0, 7} {
		t.Run(fmt.Sprint(daysLater, " days later"), func(t *testing.T) {
			ctx := t.Context()
			r := teamtest.NewRoot(t, nil)
			team := teamtest.NewTeam(t, r, "alice", "bob")
			now := wire.NewID()
			hex := fmt.Sprintf("%012x", now.Time().AddDate(0, 0, 3-daysLater).UnixMilli())
			ahead := wire.ID(hex[:8]+"-"+hex[8:]) + now[13:]
			teamtest.Post(t, team, "alice", "bob", "ahead", func(m *wire.Message) { m.ID, m.SentAt = ahead, ahead.Time() })
			teamtest.Must(t, team.Box("bob").MarkRead(ctx, ahead))
			answer := teamtest.Post(t, team, "bob", "alice", "answer", func(m *wire.Message) { m.InReplyTo, m.Thread = ahead, ahead })
			teamtest.Must(t, team.Box("alice").MarkRead(ctx, answer))
			for _, b := range []wire.Name{"alice", "bob"} {
				_, err := keep.GC(ctx, team.Box(b), keep.GCOptions{Before: time.Now().AddDate(0, 0, 5)})
				teamtest.Must(t, err)
			}
			then := time.Now().AddDate(0, 0, -daysLater)
			teamtest.Must(t, filepath.WalkDir(team.Dir().Path(), func(path string, _ fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Chtimes(path, then, then)
			}))

			items, err := search.Thread(ctx, team, ahead)
			if err != nil || len(items) != 2 {
				t.Errorf("the thread has %d messages: %v", len(items), err)
			}
			m := search.OwnMessage(team.Box("alice"), ahead)
			if found := AnswersTo(ctx, team.Root(), m).Replies(m, wire.Address{}); len(found.Counted) != 1 {
				t.Errorf("%d replies", len(found.Counted))
			}
			if m == nil {
				t.Fatal("it is not found")
			}
			got := AnswersTo(ctx, r, m).Trace(m, m.To[0])
			if !got.Reached("replied") || !got.Reached("read") || !strings.HasPrefix(got.Stage("read").Evidence, "event ") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A thread is found however its id is written in a file that another program has stored.
func TestThreadWrittenByOthers(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	thread := teamtest.Post(t, team, "alice", "bob", "first", func(*wire.Message) {})
	upper := strings.ToUpper(string(thread))
	for _, written := range []string{
		string(thread), upper, "{" + upper[:30] + string(thread[30:]) + "}", strings.ReplaceAll(string(thread), "-", ""), "urn:uuid:" + string(thread),
		fmt.Sprintf(`\u%04x%s`, thread[0], thread[1:35]) + fmt.Sprintf(`\u%04x`, thread[35]),
	} {
		id := wire.NewID()
		text := fmt.Sprintf(`{"id":"%s","from":"alice@main","thread":"%s","in_reply_to":"%s","body":""}`, id, written, written)
		teamtest.Must(t, os.WriteFile(filepath.Join(team.Box("bob").Path(), "inbox/new", string(id)+".json"), []byte(text), 0o600))
		items, err := search.Thread(t.Context(), team, thread)
		if teamtest.Must(t, err); !slices.ContainsFunc(items, func(it *wire.Item) bool { return it.ID == id }) {
			t.Errorf("%s: not found", written)
		}
	}
}
