package ptyrun

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A busy machine's runner reads the screen for whoever looks at it, and goes on so much later that the dialog there counts,
// before it has seen that its text was accepted. The question stays open.
func TestDialogBeforeReceipt(t *testing.T) {
	for range 5 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := newRig(t).fake(testagent.Options{}).run().idle()
			var run *runner
			r.Wait("its runner", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				run = r.runner
				return run != nil
			})
			r.Send("CONFIRM [touch made.txt]")
			for isAsking := false; !isAsking; {
				_, err := loop.In(run.Loop, func() (any, error) {
					time.Sleep(5 * time.Millisecond)
					run.prog.Refresh()
					isAsking = strings.Contains(strings.Join(run.viewers.Screen(control.ScreenRequest{}).Lines, " "), "Do you want to proceed?")
					if isAsking {
						time.Sleep(2 * quick.Settle)
					}
					return nil, nil
				})
				must(t, err)
			}
			at := func(kind string) int {
				return slices.IndexFunc(r.Events(), func(e string) bool { return strings.HasPrefix(e, kind) })
			}
			r.Wait("the question", r.Has("confirm_required"))
			r.Wait("the receipt", r.Has("injected"))
			if at("confirm_required") < at("turn_started") {
				t.Error("the beginning of the turn has ended its question")
			}
		})
	}
}

// A dialog is reported, and nothing is typed into it; an answer presses the option, and then the waiting message is
// typed.
func TestDialogIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.Wait("the first to be read", r.Read(r.Send("CONFIRM [touch made.txt]")))
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	q := r.questions()[0]
	if q.Dialog != "permission" || !strings.Contains(q.Prompt, "touch made.txt") {
		t.Errorf("asked %+v", q)
	}
	id := r.Send("and this")
	time.Sleep(400 * time.Millisecond)
	if !r.Unread(id) || len(r.Fakes(testagent.DialogKey)) > 0 {
		t.Fatal("something was typed into a dialog")
	}
	out, err := r.Client().Answer(t.Context(), ask.Answer{ID: q.ID, By: "alice"})
	if err != nil || out.Done != "answered" {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := r.Fakes(testagent.Answered); len(got) != 1 || !strings.Contains(got[0], "touch made.txt") {
		t.Errorf("answers %q", got)
	}
	r.Wait("the other to be read", r.Read(id))
	if n := len(r.questions()); n != 1 {
		t.Errorf("%d questions", n)
	}
}

func TestDialogIsDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	gates := quick
	gates.Idle = time.Second
	r.opt.timing = &gates
	r.run().idle()
	r.Wait("the first to be read", r.Read(r.Send("CONFIRM [touch made.txt]")))
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	if out, err := r.Client().Answer(t.Context(), ask.Answer{Deny: true, By: "alice"}); err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	denied := time.Now()
	r.Wait("the end", func() bool { return strings.Contains(strings.Join(r.Events(), "\n"), "turn_completed") })
	// A person asked for the turn, so the runner does not wait for an answer that may not show yet.
	if took := time.Since(denied); took > 20*gates.Idle {
		t.Errorf("the end was told %s after the answer", took)
	}
}

// A menu that a person opened in the program blocks mail, and is answered at its terminal only.
func TestMenuIsNotAnswered(t *testing.T) {
	t.Parallel()
	screen, err := filepath.Abs("../testdata/screens/claude-2.1.197-theme.bin")
	must(t, err)
	r := newRig(t)
	keys := filepath.Join(r.opt.Dir, "keys")
	r.program("claude", "sh", "-c", `stty raw -echo; : >"$2"; cat "$1"; exec cat >"$2"`, "sh", screen, keys)
	gates := quick
	r.opt.timing = &gates
	r.run()
	id := r.Send("hello")
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	for _, req := range []ask.Answer{{}, {Option: "2"}, {Deny: true}} {
		req.By = "alice"
		if _, err := r.Client().Answer(t.Context(), req); err == nil || !strings.Contains(err.Error(), "only a person at its terminal") || !saysToTry(err, run.TryAttach) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	pressed, err := os.ReadFile(keys)
	if keys := strings.TrimPrefix(string(pressed), "\x1b[?62;22c"); err != nil || keys != "" || !r.Unread(id) {
		t.Errorf("pressed %q, %v; unread: %v", keys, err, r.Unread(id))
	}
}

// A program that swallows a return key until it has drawn the text gets it afterwards.
func TestReturnWaitsForTheText(t *testing.T) {
	t.Parallel()
	r, patient := newRig(t), quick
	patient.Render = time.Minute
	r.opt.timing = &patient
	keys := filepath.Join(r.opt.Dir, "keys")
	r.program("claude", "sh", "-c", `stty raw -echo
box() { printf '\033[H%s\r\n❯ %s\033[K\r\n%s\033[2;%dH' "$rule" "$1" "$rule" $((3 + ${#1})); }
rule=$(printf '─%.0s' $(seq 80))
box ''
text=$(head -c 6)
sleep 0.7
stty min 0 time 0; cat >/dev/null; stty min 1
box "$text"
head -c 1 >"$1"
exec cat >/dev/null`, "sh", keys)
	r.run()
	r.Wait("the box", r.shows("❯"))
	if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("/model"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the return key", func() bool { pressed, _ := os.ReadFile(keys); return string(pressed) == "\r" })
}

// Urgent mail does not interrupt while a person types: the key would end the turn, and the draft would block the mail.
func TestUrgentWaitsForAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	gates := quick
	gates.PersonQuiet = time.Second
	r.opt.timing = &gates
	r.think("THINK 10m")
	c := r.Client()
	type key struct{ begun, typed time.Time }
	var keys []key
	for i := range 15 {
		k := key{begun: time.Now()}
		if _, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("\x1b[I"), Raw: true}); err != nil {
			t.Fatal(err)
		}
		k.typed = time.Now()
		if keys = append(keys, k); i == 2 {
			r.Send("stop that", urgent)
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.Wait("the interrupt", func() bool { return len(r.Fakes(testagent.Interrupted)) > 0 })
	es, _ := testagent.ReadLog(r.Log)
	at := es.Of(testagent.Interrupted)[0].At
	for i, k := range keys { // on a busy machine a person may well be quiet between two of them
		if quiet := at.Sub(k.begun); at.After(k.typed) && quiet < gates.PersonQuiet {
			t.Errorf("interrupted %v after key %d", quiet, i)
		}
	}
}

// A dialog about trust is never answered, and nothing is typed before it.
func TestTrustIsNotAnswered(t *testing.T) {
	for name, o := range map[string]testagent.Options{"first": {Trust: true}, "behind its prompt": {TrustLate: 80 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, gates := newRig(t).fake(o), quick
			gates.FirstIdle = 5 * time.Second // the dialog may be late
			r.opt.timing = &gates
			r.run()
			id := r.Send("hello")
			r.Wait("the question", func() bool { return len(r.questions()) == 1 })
			if k := r.questions()[0].Dialog; k != "trust" {
				t.Errorf("kind %q", k)
			}
			if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err == nil {
				t.Error("it was answered")
			}
			if !r.Unread(id) || len(r.Fakes(testagent.Answered)) > 0 || len(r.Fakes(testagent.Typed)) > 0 {
				t.Error("something was typed")
			}
		})
	}
}

// A person may ask for something before the runner counts the program as ready. After a permission that belongs to a turn
// the program is not starting again.
func TestPermissionBeforeReady(t *testing.T) {
	t.Parallel()
	r, gates := newRig(t).fake(testagent.Options{}), quick
	gates.FirstIdle = time.Hour
	r.opt.timing = &gates
	r.run().idle()
	if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("CONFIRM [make test]"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the turn to go on", r.Has(`state_change new="thinking"`))
}

// The answer to a dialog that the status shows already waits until that has been stable.
func TestAnswerTooEarly(t *testing.T) {
	t.Parallel()
	r, late := newRig(t).fake(testagent.Options{}), quick
	late.Settle, late.PersonQuiet = time.Second, time.Minute // the answer waits for as long as a person types
	r.opt.timing = &late
	r.run().idle()
	r.Send("CONFIRM [touch a.txt]")
	r.Wait("the dialog", func() bool {
		s, err := r.status()
		return err == nil && s.State == "confirming"
	})
	if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err != nil {
		t.Error(err)
	}
}

// An answer waits until the last key of a person, as typed by request, cannot meet it.
func TestAnswerAfterTyping(t *testing.T) {
	t.Parallel()
	r, slow := newRig(t).fake(testagent.Options{}), quick
	slow.Idle = time.Second
	r.opt.timing = &slow
	r.run().idle()
	if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("CONFIRM [touch a.txt]"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err != nil {
		t.Error(err)
	}
}

// An answer to a dialog does not answer the one that replaced it.
func TestOtherDialog(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{DialogChange: 3 * time.Second}).run().idle()
	r.Send("CONFIRM [touch a.txt]")
	r.Wait("the question", func() bool { return len(r.questions()) >= 1 })
	first := r.questions()[0]
	r.Wait("another question", func() bool { return len(r.questions()) == 2 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{ID: first.ID, By: "alice"}); err == nil {
		t.Error("the first was answered")
	}
	if got := r.Fakes(testagent.Answered); len(got) > 0 {
		t.Errorf("answered %q", got)
	}
}

// A question is closed when its dialog disappears by itself.
func TestDialogVanishes(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{DialogVanish: 3 * time.Second}).run().idle()
	r.Send("CONFIRM [touch a.txt]")
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	r.Wait("it to be closed", func() bool {
		s, err := r.status()
		return err == nil && s.Gate != control.GateDialog
	})
	if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err == nil || !strings.Contains(err.Error(), "it is not asking anything") {
		t.Error(err)
	}
	if got := r.Fakes(testagent.Answered); len(got) > 0 {
		t.Errorf("answered %q", got)
	}
}

// The event says who answered a dialog even if the next one follows at once.
func TestAnswerBeforeTheNextDialog(t *testing.T) {
	t.Parallel()
	const script = `ask() { printf '\033[2J\033[H%0100d\n Bash command\n\n   touch '$1'\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n' 0 | sed 's/0\{50\}/──────────────────────────────────────────────────/g'; }
stty raw -echo opost; ask a.txt; head -c 1 >/dev/null; ask b.txt; sleep 60`
	r := newRig(t).program("claude", "bash", "-c", script).run()
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the next", func() bool { return len(r.questions()) == 2 })
	r.Wait("who answered", func() bool { // the log is written after the screen
		all, err := r.Bob.Log().Newest(1 << 20)
		return err == nil && slices.ContainsFunc(all, func(e wire.Event) bool {
			return e.Field("id") == r.questions()[0].ID && e.Field("by") == "alice"
		})
	})
}

// saysToTry reports whether an error names something to try.
func saysToTry(err error, try control.Try) bool {
	e, ok := errors.AsType[*control.Error](err)
	return ok && slices.Contains(e.Try, try)
}

// What a shell asks is a question with its text, which is answered by typing.
func TestShellAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("bash", "bash", "--norc").run().idle()
	c := r.Client()
	if _, err := c.Type(t.Context(), control.TypeRequest{Text: []byte(`read -p "Deploy? [y/N] " x; echo got=$x`), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	if q := r.questions()[0]; q.Dialog != "question" || q.Prompt != "Deploy? [y/N]" || !q.IsTyped() {
		t.Errorf("asked %+v", q)
	}
	if _, err := c.Answer(t.Context(), ask.Answer{By: "alice"}); err == nil || !saysToTry(err, run.TryPrompt) {
		t.Errorf("approved: %v", err)
	}
	if _, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("y"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the answer", r.shows("got=y"))
	r.Wait("the question to go", r.Has(`state_change new="idle"`))
}
