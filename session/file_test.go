package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Of several sessions begun at once, each to be the only one, one succeeds.
func TestAlone(t *testing.T) {
	t.Parallel()
	st := testTeam(t)
	made := make(chan error)
	for range 8 {
		go func() {
			_, err := st.New(t.Context(), Options{Agent: "bob", Alone: true})
			made <- err
		}()
	}
	n := 0
	for range 8 {
		if err := <-made; err == nil {
			n++
		} else if e, ok := errors.AsType[*SessionExistsError](err); !ok || e.Other.AgentID != "bob" {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A runner that attaches again does not make a quiet session look active.
func TestAttachAgain(t *testing.T) {
	t.Parallel()
	st := testTeam(t)
	updatedAt := func(o AttachOptions) time.Time {
		must(t, st.Attach(t.Context(), "bob", o))
		list, _, err := st.List()
		must(t, err)
		return list[0].UpdatedAt
	}
	begun := updatedAt(AttachOptions{Begin: true, IsEngaged: true})
	if quiet := updatedAt(AttachOptions{}); !quiet.Equal(begun) {
		t.Errorf("a quiet session counts as active at %s, after %s", quiet, begun)
	}
	if busy := updatedAt(AttachOptions{IsEngaged: true}); !busy.After(begun) {
		t.Errorf("the agent works, but its session is quiet since %s", busy)
	}
}

// A session of Trusted Autonomy is read and written back unchanged. Drafts are listed once, in order of announcement.
func TestVectors(t *testing.T) {
	read := func(file string, all any) {
		data, err := os.ReadFile(filepath.Join("..", "testdata", "wire", file))
		must(t, err)
		must(t, json.Unmarshal(data, all))
	}
	var vectors []struct {
		Type, Name string
		Text       string `json:"json_text"`
	}
	read("000-001_session_channel.json", &vectors)
	n := 0
	for _, v := range vectors {
		if v.Type == "InteractiveSession" {
			n++
			s, err := decode([]byte(v.Text))
			must(t, err)
			if got := encode(t, s); got != v.Text {
				t.Errorf("%s: %s", v.Name, cmp.Diff(v.Text, got))
			}
		}
	}
	var behaviour []struct {
		Function string
		Calls    []wire.UUID
		Result   json.RawMessage
	}
	read("behaviour.json", &behaviour)
	for _, c := range behaviour {
		if c.Function == "InteractiveSession.add_draft" {
			n++
			s := &Session{}
			for _, id := range c.Calls {
				s.AddDraft(id, now())
			}
			var want []wire.UUID
			if json.Unmarshal(c.Result, &want); !slices.Equal(s.DraftIDs, want) {
				t.Errorf("%v, not %v", s.DraftIDs, want)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d vectors of sessions", n)
	}
}

const theirs = `{"session_id":"0190163d-8694-739b-aea5-966c26f8ad91","goal_id":"11111111-2222-4333-8444-555555555555",` +
	`"channel_id":"cli:tty0","agent_id":"bob","state":"active","created_at":"2026-03-01T10:00:00Z","updated_at":"2026-03-01T10:00:00Z",` +
	`"messages":[{"sender":"human","content":"hello","timestamp":"2026-03-01T10:01:00Z","edited":true}],` +
	`"atm":{"seq":3,"later":true},"workspace":{"path":"/tmp","ids":[1.50]}}`

func TestFilesThatAreNone(t *testing.T) {
	const id = "0190163d-8694-739b-aea5-966c26f8ad91"
	for name, content := range map[string]string{
		"empty":       "",
		"torn":        theirs[:200],
		"a list":      "[]",
		"another id":  strings.Replace(theirs, id, "11111111-2222-4333-8444-555555555555", 1),
		"no agent":    strings.Replace(theirs, `"bob"`, `"../bob"`, 1),
		"a state":     strings.Replace(theirs, `"active"`, `"asleep"`, 1),
		"twice":       strings.Replace(theirs, `"state"`, `"agent_id":"bob","state"`, 1),
		"not UTF-8":   strings.Replace(theirs, "hello", "h\xffllo", 1),
		"our field":   strings.Replace(theirs, `{"seq":3,`, `{"seq":"3",`, 1),
		"NUL at end":  theirs + "\x00\x00",
		"two of them": theirs + theirs,
	} {
		t.Run(name, func(t *testing.T) {
			st := testTeam(t)
			good := begin(t, st)
			path := filepath.Join(st.mail.Dir().Path(), sessionsDir, id+extension)
			must(t, os.WriteFile(path, []byte(content), 0o600))
			var file *FileError
			if _, err := st.Get(id); !errors.As(err, &file) || !strings.Contains(err.Error(), path+" is not a session: ") {
				t.Errorf("Get: %v", err)
			}
			if _, err := st.Change(ctx, id, func(s *Session) error { s.LogMessage(SenderHuman, "x", now()); return nil }); !errors.As(err, &file) {
				t.Errorf("Change: %v", err)
			}
			list, bad, err := st.List()
			if err != nil || len(list) != 1 || list[0].SessionID != good.SessionID || len(bad) != 1 {
				t.Errorf("List: %v, %v, %v", list, bad, err)
			}
			if left, err := os.ReadFile(path); err != nil || string(left) != content {
				t.Errorf("the file is %q, %v", left, err)
			}
			must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
			if _, err := st.Get(id); !errors.As(err, &file) {
				t.Errorf("a directory: %v", err)
			}
		})
	}
}

func TestLogIsBounded(t *testing.T) {
	s, err := decode([]byte(theirs))
	must(t, err)
	block := strings.Repeat("wörd \"x\"\n", 2000)
	var all uint64
	for range 200 {
		s.LogMessage(SenderAgent, block, now())
	}
	b := encode(t, s)
	if len(b) > maxLog+4096 || len(b) < maxLog/2 {
		t.Errorf("the file has %d bytes", len(b))
	}
	entries, all := s.Entries(0)
	if all != 201 || len(entries) >= 201 || uint64(len(entries)) != all-s.Notes.Dropped {
		t.Errorf("%d of %d", len(entries), all)
	}
	if tail, n := s.Entries(200); len(tail) != 1 || n != 201 {
		t.Errorf("%d after 200, %d in all", len(tail), n)
	}
	if again, err := decode([]byte(b)); err != nil || encode(t, again) != b {
		t.Errorf("not read back: %v", err)
	}
	// A message longer than the log loses its beginning, cut between characters.
	s.LogMessage(SenderAgent, strings.Repeat("\x01ü", maxLog), now())
	entries, all = s.Entries(201)
	if len(entries) != 1 || all != 202 || !strings.HasPrefix(entries[0].Content, "…") || !utf8.ValidString(entries[0].Content) {
		t.Errorf("%d entries", len(entries))
	}
	if n := len(encode(t, s)); n > maxLog+4096 {
		t.Errorf("the file has %d bytes", n)
	}
}

// Unread input is folded at every change, but does not return once the log has dropped it.
func TestLogOfUnreadInput(t *testing.T) {
	s, err := decode([]byte(theirs))
	must(t, err)
	start := now()
	for newest := range 7 {
		for k := range newest + 1 {
			text := fmt.Sprint(k, strings.Repeat(" x", maxLog/8))
			s.AddInput(Input{HumanInput: foreign.HumanInput{Kind: "message", Text: text}, At: start.Add(time.Duration(k))})
		}
		encode(t, s)
	}
	said := ""
	for _, m := range s.Messages {
		said += m.Content[:1]
	}
	if said != "456" {
		t.Errorf("the log has %s", said)
	}
}

// A session is read with all its notes, and unknown members of the file are kept.
func TestNotes(t *testing.T) {
	first := strings.Replace(theirs, `"atm":{"seq":3,"later":true}`, `"draft_ids":["`+draftID+`"],"atm":{"seq":3,"dropped":5,`+
		`"goal":"2026-03-01T10:00:01Z",`+
		`"drafts":{"`+draftID+`":{"at":"2026-03-01T10:00:02.250Z","summary":"x","artifact_count":2}},`+
		`"run":{"owned":true,"auto_paused":true,"ended":"goal_complete"},"heard":"2026-03-01T10:00:00.500Z","seen":{"me":2}}`, 1)
	s, err := decode([]byte(first))
	must(t, err)
	if diff := cmp.Diff(first, encode(t, s)); diff != "" {
		t.Error(diff)
	}
	at := func(ns int) time.Time { return time.Date(2026, 3, 1, 10, 0, 0, ns, time.UTC) }
	if diff := cmp.Diff([]Draft{{draftID, at(2_250_000_000), "x", 2}}, s.Drafts()); diff != "" {
		t.Error(diff)
	}
	_, all := s.Entries(0)
	if !s.Notes.Goal.Equal(at(1_000_000_000)) || all != 6 || s.Notes.Seq != 3 ||
		!s.Notes.Runner.Owned || !s.Notes.Runner.AutoPaused || s.Notes.Runner.Ended != "goal_complete" {
		t.Errorf("%+v", s.Notes)
	}
	s.LogMessage(SenderAgent, "hi", now())
	must(t, s.Move(Paused, "by me", now()))
	got := encode(t, s)
	for _, part := range []string{`"workspace":{"path":"/tmp","ids":[1.50]}`, `"seen":{"me":2}`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
}
