package session

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const draftID = "6f1c2a34-0b7e-4c1d-9a55-0123456789ab"

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
			var s Session
			must(t, json.Unmarshal([]byte(v.Text), &s))
			if got, err := json.Marshal(s); string(got) != v.Text {
				t.Errorf("%s: %v, %s", v.Name, err, cmp.Diff(v.Text, string(got)))
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
	`"atm":{"after":3},"workspace":{"path":"/tmp","ids":[1.50]}}`

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
		"our field":   strings.Replace(theirs, `{"after":3`, `{"after":"3"`, 1),
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
			if _, err := st.Change(ctx, id, func(s *Session) error { s.AddDraft(draftID, now()); return nil }); !errors.As(err, &file) {
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

// A file is read with all its notes, and written without what was said; unknown members are kept. One that is over already
// goes to the archive with the next change of any session.
func TestFile(t *testing.T) {
	st := testTeam(t)
	other := begin(t, st)
	const id, over = "0190163d-8694-739b-aea5-966c26f8ad91", "11111111-2222-4333-8444-555555555555"
	notes := `"draft_ids":["` + draftID + `"],"atm":{"after":3,"owned":true,"moves":[{"to":"paused","at":"2026-03-01T10:00:02.250Z","why":"(bob has left)","auto":true}]}`
	first := strings.Replace(theirs, `"atm":{"after":3}`, notes, 1)
	write := func(id, content string) {
		must(t, os.WriteFile(filepath.Join(st.mail.Dir().Path(), sessionsDir, id+extension), []byte(content), 0o600))
	}
	write(id, strings.Replace(first, `"active"`, `"paused"`, 1))
	left := strings.NewReplacer(`"active"`, `"completed"`, id, over).Replace(theirs)
	write(over, left)
	s, err := st.Change(ctx, id, func(s *Session) error { return s.Move(Active, "by me", now()) })
	must(t, err)
	data, err := os.ReadFile(filepath.Join(st.mail.Dir().Path(), sessionsDir, id+extension))
	must(t, err)
	want := strings.Replace(first, `"messages":[{"sender":"human","content":"hello","timestamp":"2026-03-01T10:01:00Z","edited":true}],`, "", 1)
	at, _ := wire.Marshal(s.UpdatedAt)
	want = strings.NewReplacer(`"updated_at":"2026-03-01T10:00:00Z"`, `"updated_at":`+string(at),
		`"auto":true}`, `"auto":true},{"to":"active","at":`+string(at)+`,"why":"by me"}`).Replace(want)
	if diff := cmp.Diff(want+"\n", string(data)); diff != "" {
		t.Error(diff)
	}
	archived, err := os.ReadFile(filepath.Join(st.mail.Dir().Path(), archiveDir, over+extension))
	if err != nil || string(archived) != left {
		t.Errorf("archived: %s, %v", archived, err)
	}
	// Its log and inbox have nothing: what the file has is shown.
	if _, got := said(t, st, over); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("it was said: %q", got)
	}
	list, _, err := st.List()
	if err != nil || len(list) != 2 || list[1].SessionID != other.SessionID {
		t.Errorf("%v, %v", list, err)
	}
}

// A session that is over is opened only by who asks for it. It stays as it is, and is found by its id.
func TestEnded(t *testing.T) {
	t.Parallel()
	st := testTeam(t)
	var ids []wire.UUID
	for range 20 {
		id := begin(t, st).SessionID
		move(t, st, id, Aborted)
		ids = append(ids, id)
	}
	goesOn := begin(t, st).SessionID
	names, err := st.mail.Dir().Names(sessionsDir)
	if err != nil || !slices.Equal(names, []string{string(goesOn) + extension}) {
		t.Errorf("beside the session that goes on: %v, %v", names, err)
	}
	// A look that opened one would find no session in it.
	for _, id := range ids[1:] {
		must(t, os.WriteFile(filepath.Join(st.mail.Dir().Path(), fileIn(archiveDir, id)), []byte("none"), 0o600))
	}
	list, bad, err := st.List()
	if len(list) != 1 || len(bad) > 0 || err != nil {
		t.Errorf("%v, %v, %v", list, bad, err)
	}
	if of, err := st.Of("bob"); len(of) != 1 || err != nil || st.CountEnded() != 20 {
		t.Errorf("%v, %v, %d", of, err, st.CountEnded())
	}
	if list, bad, err = st.Ended(); len(list) != 1 || len(bad) != 19 || err != nil {
		t.Errorf("asked for: %v, %v, %v", list, bad, err)
	}
	found, err := st.Find(string(ids[0]))
	must(t, err)
	if s, err := st.Get(found); err != nil || s.State != Aborted {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = st.Change(ctx, found, func(s *Session) error { return s.Move(Active, "", now()) })
	if refused, isRefused := errors.AsType[*Error](err); !isRefused {
		t.Errorf("it goes on: %v, %v", refused, err)
	}
}

// What is due: by the agent's newest sign of life, and by the goals that it has reached since the session began.
func TestRules(t *testing.T) {
	begun := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	const goal = "11111111-2222-4333-8444-555555555555"
	rules := Rules{WhenIdle: time.Minute, OnGoal: true}
	for name, c := range map[string]struct {
		goal  wire.UUID
		agent reducer.State
		after time.Duration
		want  string
	}{
		"quiet":              {NoGoal, reducer.State{}, time.Minute, "idle_timeout: 60s"},
		"not for so long":    {NoGoal, reducer.State{HeardAt: begun.Add(time.Second)}, time.Minute, ""},
		"any goal":           {NoGoal, reducer.State{Goals: []reducer.Goal{{ID: draftID, At: begun}}}, 0, "goal_complete"},
		"its goal":           {goal, reducer.State{Goals: []reducer.Goal{{ID: goal, At: begun}}}, 0, "goal_complete"},
		"another goal":       {goal, reducer.State{Goals: []reducer.Goal{{ID: draftID, At: begun}}}, 0, ""},
		"a goal of before":   {goal, reducer.State{Goals: []reducer.Goal{{ID: goal, At: begun.Add(-1)}}}, 0, ""},
		"of another session": {goal, reducer.State{Goals: []reducer.Goal{{ID: goal, InSession: draftID, At: begun}}}, 0, ""},
	} {
		s := &Session{InteractiveSession: InteractiveSession{SessionID: goal, GoalID: c.goal, State: Active, CreatedAt: begun, UpdatedAt: begun}}
		must(t, rules.Apply(s, &c.agent, begun.Add(c.after)))
		if got := s.EndedByRule(); got != c.want || (s.State == Completed) != (got != "") {
			t.Errorf("%s: %s by %q", name, s.State, got)
		}
	}
}
