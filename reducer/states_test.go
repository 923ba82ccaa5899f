package reducer

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const statesTables = "testdata/states.md"

// tables returns the rows of all Markdown tables whose first column has this heading.
func tables(text, first string) (rows [][]string) {
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			in = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == first:
			in = true
		case in && strings.Trim(cells[0], "-") != "":
			rows = append(rows, cells)
		}
	}
	return rows
}

// code returns the texts between backticks.
func code(cell string) (out []string) {
	for i, s := range strings.Split(cell, "`") {
		if i%2 == 1 {
			out = append(out, s)
		}
	}
	return out
}

// before returns the states that the tables name.
func before(t *testing.T, doc string) (names []string, make map[string]func() *player) {
	make = map[string]func() *player{}
	for _, row := range tables(doc, "before") {
		names = append(names, row[0])
		make[row[0]] = func() *player {
			p := newPlayer()
			for _, line := range code(row[1]) {
				if _, err := p.play(line); err != nil {
					t.Fatal(row[0], line, err)
				}
			}
			return p
		}
	}
	return names, make
}

// Every row of the tables of events is true, and the tables have every kind of event in every state once.
func TestStates(t *testing.T) {
	doc := document(t)
	names, made := before(t, doc)
	byEvent := map[string]map[string][]string{} // event, state: the row
	rows := tables(doc, "event")
	var events []string
	for _, row := range rows {
		for _, e := range code(row[0]) {
			if byEvent[e] == nil {
				byEvent[e] = map[string][]string{}
				events = append(events, e)
			}
			for _, n := range strings.Split(row[1], ", ") {
				if n == "any" || n == "the others" {
					continue
				}
				if !slices.Contains(names, n) {
					t.Errorf("%s: no state %q", e, n)
				}
				if byEvent[e][n] != nil {
					t.Errorf("%s in %s appears twice", e, n)
				}
				byEvent[e][n] = row
			}
		}
	}
	for _, row := range rows {
		if row[1] != "any" && row[1] != "the others" {
			continue
		}
		for _, e := range code(row[0]) {
			for _, n := range names {
				if old := byEvent[e][n]; old == nil {
					byEvent[e][n] = row
				} else if row[1] == "any" || old[1] == "the others" {
					t.Errorf("%s in %s appears twice", e, n)
				}
			}
		}
	}
	said := map[string]bool{}
	for _, e := range events {
		kind := words(e)[0]
		if kind == "pty" {
			kind = words(e)[1]
		}
		said[kind] = true
		for _, n := range names {
			row := byEvent[e][n]
			if row == nil {
				t.Errorf("%s in %s: not said", e, n)
				continue
			}
			if d := differs(t, made[n](), e, row[2:]); d != "" {
				t.Errorf("%s in %s: %s", e, n, d)
			}
		}
	}
	for _, kind := range allKinds {
		if !said[kind] {
			t.Errorf("nothing is said of %s", kind)
		}
	}
}

func document(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(statesTables)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// differs says where a row and the effect of its event differ.
func differs(t *testing.T, p *player, event string, row []string) string {
	was := fromJSON(&p.state)
	if _, err := p.play(event); err != nil {
		t.Fatal(event, err)
	}
	a, b := was.Session(), p.state.Session()
	asks := func(ses *Session) string {
		if ses.Waiting() == nil {
			return ""
		}
		return strings.TrimSpace(ses.Waiting().Kind + " " + ses.Waiting().Tool)
	}
	var wrong []string
	for i, c := range [][3]string{
		{"turn_status", string(a.Turn.Status), string(b.Turn.Status)}, {"activity", string(a.Activity), string(b.Activity)},
		{"word", string(a.Word()), string(b.Word())}, {"detail", a.Detail, b.Detail}, {"waiting_on", asks(a), asks(b)},
	} {
		want := row[i]
		switch want {
		case "=":
			want = c[1]
		case "–":
			want = ""
		}
		if c[2] != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q, not %q", c[0], c[2], want))
		}
	}
	also := strings.Split(row[5], ", ")
	now := b.Turn
	isOther := a.Turn.ID != now.ID
	has := func(s string) bool { return slices.Contains(also, s) }
	// What has changed, and what the row says.
	for _, c := range []struct {
		what      string
		is, wants bool
	}{
		{"another turn", isOther, isOther && has("turn "+now.ID) || now.IsGenerated && has("a turn of its own") || now.ID == "" && has("no turn") && isOther},
		{"an end", !same(a.Last, b.Last), b.Last != nil && has("last "+b.Last.Status) || b.Last == nil && has("no end")},
		{"errors", p.state.Errors != was.Errors, has("errors")},
		{"dropped", p.state.Dropped != was.Dropped, has("dropped")},
		{"unknown", p.state.Unknown != was.Unknown, has("unknown")},
		{"usage", p.state.Usage != was.Usage, has("usage")},
		{"read", p.state.Read != was.Read, has("read")},
	} {
		if c.is != c.wants {
			wrong = append(wrong, fmt.Sprintf("%s: %v, not %v (%s)", c.what, c.is, c.wants, row[5]))
		}
	}
	for _, s := range also {
		known := []string{"", "no end", "turn " + now.ID, "a turn of its own", "no turn", "errors", "dropped", "unknown", "usage", "read"}
		if b.Last != nil {
			known = append(known, "last "+b.Last.Status)
		}
		if !slices.Contains(known, s) {
			wrong = append(wrong, "not "+s)
		}
	}
	return strings.Join(wrong, "; ")
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func TestWords(t *testing.T) {
	said := map[Activity]bool{}
	for _, row := range tables(document(t), "activity") {
		for _, a := range code(row[0]) {
			said[Activity(a)] = true
			if got := (&Session{Turn: Turn{Status: TurnIdle}, Activity: Activity(a)}).Word(); string(got) != code(row[1])[0] {
				t.Errorf("%s is %s", a, got)
			}
		}
	}
	for _, a := range []Activity{Unknown, Starting, Idle, Thinking, Responding, ToolRunning, AwaitingInput, Confirming, Exited, Error} {
		if !said[a] {
			t.Error(a)
		}
	}
	if got := (&Session{Turn: Turn{Status: TurnBusy}, Activity: Unknown}).Word(); got != WordBusy {
		t.Error(got)
	}
}

// Every kind of event is a sign of life or not, as the table says.
func TestSignsOfLife(t *testing.T) {
	rows := tables(document(t), "no sign of life")
	if len(rows) != 1 {
		t.Fatal(rows)
	}
	none := code(rows[0][0])
	for _, e := range slices.Concat(allKinds, none) {
		p := newPlayer()
		if _, err := p.play(e); err != nil {
			t.Fatal(err)
		}
		if sign := !p.state.HeardAt.IsZero(); sign == slices.Contains(none, e) {
			t.Errorf("%s: sign of life: %v", e, sign)
		}
	}
	// A late event of a session that has ended is none.
	p := newPlayer()
	for _, line := range []string{"turn_started turn_id=t1 session=s", "session_end session=s", "+1m", "tool_call_end turn_id=t1 session=s", "turn_completed turn_id=t1 status=completed session=s"} {
		if _, err := p.play(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.now.Sub(p.state.HeardAt); got != time.Minute {
		t.Error(got)
	}
}

func TestLook(t *testing.T) {
	for _, row := range tables(document(t), "heard") {
		p := newPlayer()
		for _, line := range code(row[0]) {
			if _, err := p.play(line); err != nil {
				t.Fatal(line, err)
			}
		}
		v := p.state.Evaluate(Evidence{
			Now: p.now, IsRunnerLocked: strings.Contains(row[1], "held"), IsNotAnswering: strings.Contains(row[1], "silent"), IsPerson: strings.Contains(row[1], "person"),
		})
		got := []string{string(v.Word), cmp.Or(v.Detail, "–"), string(v.Presence)}
		if !slices.Equal(got, row[2:]) {
			t.Errorf("%s, %s: %q, not %q", row[0], row[1], got, row[2:])
		}
	}
}
