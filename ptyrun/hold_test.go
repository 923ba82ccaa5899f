//go:build unix

package ptyrun

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A claim obtained while the run ends is released: its message was not typed, and is no repeat.
func TestStopDuringClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	release := r.Lock("bob.reader")
	id := r.Send("hello")
	r.Wait("the wait for the lock", func() bool {
		s, err := r.status()
		return err == nil && s.Gate == ""
	})
	time.Sleep(50 * time.Millisecond) // now the claim is wanted
	r.Stop()
	time.AfterFunc(400*time.Millisecond, release)
	<-r.Done
	if !r.Unread(id) || len(r.Fakes(testagent.Submitted)) > 0 {
		t.Error("it was typed")
	}
	r.noClaim()
}

// A typed message that a lock kept from being marked read is marked later, and not typed again.
func TestMarkingIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.Store.LockTimeout = 50 * time.Millisecond
	r.run().idle()
	id := r.Send("hello")
	r.Wait("the paste", func() bool { return len(r.Fakes(testagent.Typed)) > 0 })
	release := r.Lock("bob.reader")
	r.Wait("the submit", func() bool { return len(r.Fakes(testagent.Submitted)) > 0 })
	time.Sleep(400 * time.Millisecond) // long enough for some failed tries
	release()
	r.Wait("the message to be read", r.Read(id))
	r.Wait("the event", r.Has("injected"))
	if got := r.Fakes(testagent.Submitted); len(got) != 1 {
		t.Errorf("submitted %q", got)
	}
	r.noClaim()
}

// A slow program shows a text after it was given up: it is cleared from the draft, and typed again as a possible
// repeat.
func TestLateDraftIsCleared(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{Deaf: 70, DeafFor: 6 * time.Second})
	r.run().idle()
	id := r.Send(strings.Repeat("much ", 100))
	r.Wait("the failure", r.Has("injection_failed"))
	_, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("a person's"), Enter: true})
	if isLate := len(r.Fakes(testagent.Typed)) > 0; err == nil && !isLate { // else this machine was too slow
		t.Error("a person's text went in behind the message")
	}
	r.Wait("the message to be read", r.Read(id))
	got := slices.DeleteFunc(r.Fakes(testagent.Submitted), func(s string) bool { return s == "a person's" })
	if len(got) != 1 || strings.Count(got[0], "[/atm]") != 1 || !strings.Contains(got[0], "may be a repeat") {
		t.Errorf("submitted %q", got)
	}
}

// A message that ends the agent counts as read: it does not end the next one.
func TestMessageThatEndsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.opt.Restart = OnCrash
	r.run().idle()
	id := r.Send("THINK 50ms EXIT 3")
	r.Wait("the restart", r.Has("restarting"))
	r.Wait("the message to be read", r.Read(id))
}

// A message that ends the agent before its return key is tried a few times, and then stays unread: the agent does not
// crash for ever, and the next message is typed.
func TestPasteThatEndsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gates := quick
	gates.Render = 300 * time.Millisecond
	r.opt.timing, r.opt.Restart = &gates, OnCrash
	got := filepath.Join(r.opt.Dir, "got")
	r.program("claude", "bash", "-c", box+`while paste; do [[ $text == *deadly* ]] && exit 1
head -c 1 >/dev/null; echo o >>`+got+`; show '⠂' '❯ '; sleep 0.3; show '✳' '❯ '; done`).run()
	deadly := r.Send("deadly")
	starts := func() (n int) {
		for _, e := range r.Events() {
			if e == "spawned" {
				n++
			}
		}
		return n
	}
	r.Wait("the last try", func() bool { return starts() == control.MaxTries+1 })
	r.Send("hello")
	r.Wait("the next message to go in", func() bool { _, err := os.Lstat(got); return err == nil })
	if n := starts(); n != control.MaxTries+1 || !r.Unread(deadly) {
		t.Errorf("%d starts; it is unread: %v", n, r.Unread(deadly))
	}
	// Somebody has it tried again.
	again := wire.Event{Source: "cli", Kind: wire.EventUnread}.With("id", string(deadly))
	if err := r.Bob.Log().Append(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	r.Wait("one more try", func() bool { return starts() > control.MaxTries+1 })
}

// A return key for a draft does not answer a dialog that came up meanwhile.
func TestTypedReturnIsNoAnswer(t *testing.T) {
	t.Parallel()
	gates := quick
	gates.BeforeReturn = 3 * time.Second
	r := newRig(t).fake(testagent.Options{TrustLate: 1500 * time.Millisecond})
	r.opt.timing = &gates
	r.run().idle()
	c := r.Client()
	r.Wait("almost the dialog", func() bool {
		es, err := testagent.ReadLog(r.Log)
		return err == nil && es.Has(testagent.Ready) && time.Since(es.Of(testagent.Ready)[0].At) > 900*time.Millisecond
	})
	_, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("hello"), Enter: true})
	isBefore := err != nil && strings.Contains(err.Error(), "nothing was typed") // on a slow machine
	if !isBefore && (err == nil || !strings.Contains(err.Error(), "dialog")) {
		t.Errorf("typed: %v", err)
	}
	if got := r.Fakes(testagent.Answered); len(got) > 0 {
		t.Errorf("answered %q", got)
	}
}

// While events cannot be appended nothing is typed, and nothing is lost.
func TestNothingIsTypedUnsaid(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.Store.LockTimeout = 50 * time.Millisecond
	r.run().idle()
	release := r.Lock("bob.events")
	id := r.Send("hello")
	time.Sleep(600 * time.Millisecond)
	if got := r.Fakes(testagent.Typed); len(got) > 0 || !r.Unread(id) {
		t.Errorf("typed %q", got)
	}
	release()
	r.Wait("the message to be read", r.Read(id))
	if got := r.Fakes(testagent.Submitted); len(got) != 1 || strings.Contains(got[0], "may be a repeat") {
		t.Errorf("submitted %q", got)
	}
}

// A message accepted while events cannot be appended is read once they are, and typed once.
func TestTakenIsReadWithItsEvent(t *testing.T) {
	t.Parallel()
	gates := quick
	gates.BeforeReturn = 2 * time.Second
	r := newRig(t).fake(testagent.Options{})
	r.opt.timing = &gates
	r.Store.LockTimeout = 50 * time.Millisecond
	r.run().idle()
	id := r.Send("hello")
	r.Wait("the paste", func() bool { return len(r.Fakes(testagent.Typed)) > 0 })
	release := r.Lock("bob.events")
	isLate := len(r.Fakes(testagent.Submitted)) > 0 // this machine was too slow
	r.Wait("the return key", func() bool { return len(r.Fakes(testagent.Submitted)) > 0 })
	if !isLate && (r.Read(id)() || r.Has("injected")()) {
		t.Error("it is read, or said, already")
	}
	release()
	r.Wait("the message to be read", r.Read(id))
	r.Wait("the events", func() bool { return r.Has("injected")() && r.Has("turn_completed")() })
	if got := r.Fakes(testagent.Submitted); len(got) != 1 {
		t.Errorf("submitted %q", got)
	}
}

// A stop between a text and its return key leaves the message unread, and a restart types it into the next program.
func TestStopBehindThePaste(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	id := r.Send("hello")
	r.Wait("the paste", func() bool { return len(r.Fakes(testagent.Typed)) > 0 })
	r.Stop()
	<-r.Done
	if !r.Unread(id) && len(r.Fakes(testagent.Submitted)) == 0 {
		t.Error("it counts as read, and was not submitted")
	}
	if !r.Has("injection_failed")() && !r.Has("injected")() {
		t.Error("its outcome is not told")
	}
}

func TestRestartBehindThePaste(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	id := r.Send("hello")
	r.Wait("the paste", func() bool { return len(r.Fakes(testagent.Typed)) > 0 })
	if _, err := r.Client().Restart(t.Context(), control.RestartRequest{}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the message to be read", r.Read(id))
	if got := r.Fakes(testagent.Submitted); len(got) != 1 && !strings.Contains(got[1], "may be a repeat") {
		t.Errorf("submitted %q", got)
	}
	r.noClaim()
}

// box draws Claude Code's box under a title, and accepts a text, which comes in several pastes.
const box = `bar=$(printf '─%.0s' {1..100})
show() { printf '\033]0;%s\007\033[2J\033[H%s\n%s\n%s\033[2;3H' "$1" "$bar" "$2" "$bar"; }
paste() { text=; until read -rd '~' piece && text+=$piece && [[ $piece == *'[/atm]'*201 ]]; do :; done; show '✳' '❯ [Pasted text #1 +2 lines]'; }
stty raw -echo opost; show '✳' '❯ '; printf '\033[?2004h'
`

// A text for which the return key was only a line break is taken back, and typed again as a possible repeat.
func TestReturnKeyIsLost(t *testing.T) {
	t.Parallel()
	r, gates := newRig(t), quick
	gates.Accept = 500 * time.Millisecond
	r.opt.timing = &gates
	got := filepath.Join(r.opt.Dir, "got")
	r.program("claude", "bash", "-c", box+`paste; head -c 1 >/dev/null; show '✳' '❯ [Pasted text #1 +2 lines]'
head -c 2 >`+got+`.keys; show '✳' '❯ '
paste; head -c 1 >/dev/null; echo "$text" >`+got+`; show '⠂' '❯ '; sleep 0.3; show '✳' '❯ '; sleep 600`).run()
	r.Wait("the message to be read", r.Read(r.Send("hello")))
	keys, _ := os.ReadFile(got + ".keys")
	text, _ := os.ReadFile(got)
	if string(keys) != "\x15\x7f" || !strings.Contains(string(text), "may be a repeat") || !r.Has("injection_failed")() {
		t.Errorf("cleared by %q, then typed %q", keys, text)
	}
}

// A message that ends the program does not block those that were typed with it.
func TestOneThatEndsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("claude", "bash", "-c", box+`while paste; do head -c 1 >/dev/null
[[ $text == *deadly* ]] && exit; show '⠂' '❯ '; sleep 0.3; show '✳' '❯ '; done`)
	r.opt.Restart = Always
	deadly, others := r.Send("deadly"), []wire.ID{r.Send("one"), r.Send("two")}
	r.run()
	r.Wait("the others to be read", func() bool { return r.Read(others[0])() && r.Read(others[1])() })
	if !r.Unread(deadly) {
		t.Error("it was read")
	}
}

// While a pointer is on its way, nobody holds the message: a hook of that very prompt may hand it over.
func TestPointerHoldsNoClaim(t *testing.T) {
	t.Parallel()
	r, gates := newRig(t).fake(testagent.Options{}), quick
	gates.Render = time.Hour
	r.opt.timing = &gates
	r.run().idle()
	s, err := r.status()
	must(t, err)
	syscall.Kill(s.ChildPID, syscall.SIGSTOP)
	id := r.Send("see a.png")
	r.Wait("the claim", r.Has("injecting"))
	r.noClaim()
	syscall.Kill(s.ChildPID, syscall.SIGCONT)
	r.Wait("the pointer to be accepted", r.Has("injected"))
	if !r.Unread(id) {
		t.Error("a pointer marked its message as read")
	}
}

// A suspended program reads a text when it resumes: until it shows that, nothing else is typed.
func TestStoppedProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	s, err := r.status()
	must(t, err)
	syscall.Kill(s.ChildPID, syscall.SIGSTOP)
	first := r.Send("the first")
	r.Wait("the first to fail", r.Has(wire.EventInjectionFailed))
	second := r.Send("the second")
	r.Wait("the gate", func() bool {
		s, err := r.status()
		return err == nil && s.Gate == control.GateUnread
	})
	syscall.Kill(s.ChildPID, syscall.SIGCONT)
	r.Wait("the first to be read", r.Read(first))
	r.Wait("the second to be read", r.Read(second))
	got := strings.Join(r.Fakes(testagent.Submitted), "\n")
	if strings.Count(got, "the first") != 1 || strings.Count(got, "the second") != 1 {
		t.Errorf("submitted %q", got)
	}
}

// A program that exits while its mail is being claimed is restarted, and gets it.
func TestEndDuringClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.opt.Restart = Always
	r.run().idle()
	s, err := r.status()
	must(t, err)
	release := r.Lock("bob.reader")
	id := r.Send("hello")
	time.Sleep(50 * time.Millisecond) // now the claim is wanted
	syscall.Kill(s.ChildPID, syscall.SIGKILL)
	r.Wait("the end", r.Has("exited"))
	release()
	r.Wait("the message to be read", r.Read(id))
}

// No return key is pressed into what came up instead of the box behind a paste, even if no driver knows it, or if only
// the title shows that something is asked.
func TestNoReturnIntoAnUnknownDialog(t *testing.T) {
	t.Parallel()
	quicker := quick
	quicker.Render = 400 * time.Millisecond
	for d, script := range map[string]string{
		"claude": box + `paste; printf '\033[2J\033[HDelete everything?\r\n❯ Yes\r\n  No'; `,
		"codex": `stty raw -echo; printf '\033]0;dir\007\033[?2004h› \r\n\r\n  model · ~/p\033[1;3H'
until read -rd '~' text && [[ $text == *201 ]]; do :; done; printf '\033]0;[ ! ] Action Required | dir\007[Pasted Content 1149 chars]'; `,
	} {
		r := newRig(t)
		r.opt.timing = &quicker
		pressed := filepath.Join(r.opt.Dir, "pressed")
		r.program(d, "bash", "-c", script+`read -rn 1 -t 5 && touch `+pressed+`; sleep 600`).run().idle()
		id := r.Send("hello")
		r.Wait("the failure", r.Has(`injection_failed outcome="failed"`))
		if _, err := os.Lstat(pressed); err == nil || !r.Unread(id) {
			t.Errorf("%s: a key was pressed: %v, it is unread: %v", d, err == nil, r.Unread(id))
		}
	}
}

// A person's keys are not held longer than three seconds by a program that shows nothing after the return key.
func TestHeldKeysGoIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	patient := quick
	patient.Accept = 30 * time.Second // so that the end is far off
	r.opt.timing = &patient
	got := filepath.Join(r.opt.Dir, "got")
	r.program("claude", "bash", "-c", box+`paste; head -c 1 >/dev/null; touch `+got+`.return
head -c 1 >`+got+`; sleep 600`).run().idle()
	c := r.Client()
	in := make(chan []byte)
	go c.Attach(t.Context(), control.AttachRequest{Cols: 100, Rows: 30}, control.Terminal{In: in, Out: io.Discard})
	r.Send("hello")
	r.Wait("the return key", func() bool { _, err := os.Lstat(got + ".return"); return err == nil })
	in <- []byte("x")
	r.Wait("the key", func() bool { text, _ := os.ReadFile(got); return string(text) == "x" })
	if r.Has("injected")() || r.Has("injection_failed")() {
		t.Error("it was held until the end")
	}
}

// hurried gives up on locks soon, and counts the failures that the runner logs under a message.
func (r *rig) hurried(message string) (failures func() int) {
	said := &viewed{}
	r.opt.Log = slog.New(slog.NewTextHandler(said, nil))
	r.Store.LockTimeout = 50 * time.Millisecond
	return func() int { return strings.Count(said.String(), "msg="+message) }
}

// What urgent mail undoes is unread before the interrupt key, so a runner that is killed then loses nothing. If it cannot
// become unread, no key is pressed.
func TestUrgentUndoesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	failures := r.hurried(`"interrupting for urgent mail"`)
	message := filepath.Join(r.Bob.Path(), "inbox/new", string(r.Send("stop that", urgent))+".json")
	hidden := filepath.Join(r.Bob.Path(), "hidden")
	must(t, os.Rename(message, hidden))
	r.think("THINK 10m")
	r.Lock("bob.inbox")
	must(t, os.Rename(hidden, message))
	r.Wait("the failure", func() bool { return failures() > 0 })
	if n := len(r.Fakes(testagent.Interrupted)); n > 0 {
		t.Errorf("%d interrupts", n)
	}
}

// Whoever hears that a question is answered finds that in the log.
func TestAnsweredInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.Send("CONFIRM [git status]")
	r.Wait("the question", r.Has("confirm_required"))
	release, answered := r.Lock("bob.events"), make(chan error, 1)
	go func() {
		_, err := r.Client().Answer(t.Context(), ask.Answer{Option: "1", By: "me"})
		answered <- err
	}()
	r.Wait("the answer", func() bool { return len(r.Fakes(testagent.Answered)) == 1 })
	r.Wait("the end of the question", func() bool {
		s, err := r.status()
		return err == nil && s.Gate != control.GateDialog
	})
	select {
	case err := <-answered:
		t.Errorf("answered, and no event says so: %v", err)
	case <-time.After(100 * time.Millisecond):
		release()
		must(t, <-answered)
	}
	if !r.Has(`state_change new="thinking"`)() {
		t.Errorf("the log: %q", r.Events())
	}
}

// Whoever hears that the agent is ready finds in the log that it is idle.
func TestReadyInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	release := r.Lock("bob.events")
	r.run()
	var s control.Status
	shows := func(state reducer.Activity, isReady bool) func() bool {
		return func() bool {
			now, err := r.status()
			s = now
			return err == nil && s.State == string(state) && s.Gate == "" && s.Ready == isReady
		}
	}
	r.Wait("its prompt", func() bool { return shows(reducer.Idle, false)() || s.Ready })
	if s.Ready {
		t.Error("it is ready, and no event says that it is idle")
	}
	release()
	r.Wait("it to be ready", shows(reducer.Idle, true))
	if !r.Has("state_change")() {
		t.Errorf("the log: %q", r.Events())
	}
}
