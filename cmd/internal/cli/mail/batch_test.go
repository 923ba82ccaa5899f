package mail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

func TestBatchMessage(t *testing.T) {
	s := newScope(t)
	const id = `"id":"01890000-0000-7000-8000-0000000000aa"`
	for line, isTaken := range map[string]bool{
		`{"to":"bob","body":"x"}`:                           true,
		`{"to":["bob","carol"],"body":"x"}`:                 true,
		`{"to":"bob","payload":{"a":1}}`:                    true,
		`{"to":"bob","body":"x","from":"alice"}`:            true,
		`{"to":"bob","body":"x","once":"ci/1"}`:             true,
		`{"to":"bob","body":"x",` + id + `}`:                true,
		`{"to":"bob","body":"x","once":"ci/1",` + id + `}`:  false,
		`{"to":"bob","body":"x","once":""}`:                 false,
		`{"to":"bob","body":"x","once":"a\nb"}`:             false,
		`{"to":"bob","body":"x","id":"nonsense"}`:           false,
		`{"to":"bob","body":"x","payload":[1]}`:             false,
		`{"to":"bob","body":"x","from":"carol"}`:            false,
		`{"to":"bob","body":"x","meta":{"atm":{"id":"7"}}}`: false,
		`{"to":"bob","body":"x","in":"2h"}`:                 false,
		`{"to":"bob","body":"x","at":"14:00"}`:              false,
		`{"to":"bob","body":" \n"}`:                         false,
		`{"to":"bob"}`:                                      false,
		`{"to":[],"body":"x"}`:                              false,
		`{"body":"x"}`:                                      false,
		`{"to":"bob","body":5}`:                             false,
		`to bob`:                                            false,
	} {
		if _, err := batchMessage(s, []byte(line)); (err == nil) != isTaken {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// What atm does not know stays in a message; when it was sent is not the line's to say.
func TestBatchMessageKeeps(t *testing.T) {
	s := newScope(t)
	m, err := batchMessage(s, []byte(`{"to":["bob","@carol"],"body":"x","once":"ci/1","x-custom":{"n":12345678901234567890},"sent_at":"2020-01-01T00:00:00Z"}`))
	must(t, err)
	if diff := cmp.Diff([]string{"bob", "@carol"}, m.To); diff != "" {
		t.Error(diff)
	}
	if got := string(m.Content.Extra); got != `{"x-custom":{"n":12345678901234567890}}` {
		t.Error(got)
	}
	if m.Once != "ci/1" || !m.Content.SentAt.IsZero() {
		t.Errorf("%+v", m)
	}
}

// Each line has its result, in their order, whatever became of the others. A line may answer one before it.
func TestBatch(t *testing.T) {
	s := newScope(t)
	p, out := newPrinter(s, true)
	b := &batch{ctx: t.Context(), s: s, p: p, progress: func(int) {}}
	bobs := deliverTo(t, s, "bob", wire.Message{Body: "bob's"}, "alice")
	const first = "01890000-0000-7000-8000-0000000000aa"
	for i, line := range []string{
		`{"to":"bob","body":"one","id":"` + first + `"}`,
		`not json`,
		`{"to":"alice","body":"to myself","id":"01890000-0000-7000-8000-0000000000ab"}`,
		`{"to":"bob","body":"an answer","in_reply_to":"01890000-0000-7000-8000-0000000000ab"}`,
		`{"to":"bob","body":"one, mended","supersedes":"` + first + `"}`,
		`{"to":"bob","body":"not mine","supersedes":"01890000-0000-7000-8000-0000000000ac"}`,
		`{"to":"bob","body":"bob's","supersedes":"` + string(bobs.ID) + `"}`,
		`{"to":"nobody","body":"x"}`,
		`{"to":"bob","body":"last"}`,
	} {
		b.add(batchLine{n: i + 1, text: []byte(line)})
	}
	b.add(batchLine{n: 10, err: fmt.Errorf("too long")})
	b.send()
	must(t, b.printErr)
	var got []string
	for line := range bytes.Lines(out.Bytes()) {
		var r struct {
			Line      int
			Delivered []struct{ To string }
			Failed    []struct{ Code string }
			Error     *struct{ Code string }
		}
		must(t, json.Unmarshal(line, &r))
		word := "sent"
		if r.Error != nil {
			word = r.Error.Code
		} else if len(r.Failed) > 0 {
			word = r.Failed[0].Code
		}
		got = append(got, fmt.Sprint(r.Line, " ", word, " ", len(r.Delivered)))
	}
	want := []string{"1 sent 1", "2 usage 0", "3 sent 1", "4 sent 1", "5 sent 1", "6 refused 0", "7 refused 0", "8 not_found 0", "9 sent 1", "10 failed 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if b.sent != 5 || b.last != 10 || !b.isAnyBad {
		t.Errorf("sent %d, last line %d, any bad: %v", b.sent, b.last, b.isAnyBad)
	}
	var texts []string
	_, err := inbox.Walk(t.Context(), s.Team.Box("bob"), maildir.Range{Unread: true}, func(it *wire.Item) bool {
		texts = append(texts, it.Body)
		return true
	})
	must(t, err)
	if diff := cmp.Diff([]string{"an answer", "one, mended", "last"}, texts); diff != "" {
		t.Error("bob has: ", diff)
	}
}

// One bad line among good ones is a failure, and good ones alone are none.
func TestBatchIsBad(t *testing.T) {
	s := newScope(t)
	for line, isBad := range map[string]bool{`{"to":"bob","body":"x"}`: false, `not json`: true, `{"to":["bob","zed"],"body":"x"}`: true} {
		p, _ := newPrinter(s, true)
		b := &batch{ctx: t.Context(), s: s, p: p, progress: func(int) {}}
		b.add(batchLine{n: 1, text: []byte(line)})
		b.send()
		if b.isAnyBad != isBad {
			t.Errorf("%s: %v", line, b.isAnyBad)
		}
	}
}
