// Package pane types mail into an agent's program that its person started in a pane of tmux: for programs that nothing else
// wakes while they are idle.
//
//   - It types only while the program is at its prompt with an empty box, is in the foreground of its own pane, which is in no
//     mode of tmux, and nobody has pressed a key there for three seconds.
//   - The text is pasted, and it is looked for in the box. Enter is pressed only if the box has it and nothing else, and
//     nobody has pressed a key since before the paste: tmux counts a key before the program draws it.
//   - Else the text is taken back, and what its person has typed meanwhile stays. If that cannot be done, the text stays in
//     the box, and counts as one that the program may have.
//   - Nothing is pasted twice.
//
// What remains: a key, or a dialog that opens, in the few milliseconds between the last look and Enter; keys of another
// program's send-keys, which tmux does not count; a program that has not enabled bracketed paste, which tmux does not tell.
package pane

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/internal/tmux"
	"github.com/agentteammail/atm/wire"
)

const (
	quiet     = 3 * time.Second // without a key of its person
	settle    = 300 * time.Millisecond
	poll      = 20 * time.Millisecond
	drawTime  = 10 * time.Second // for the program to draw what was pasted
	enterTime = time.Second      // for the box to be empty after Enter; then Enter is pressed once more
	stillTime = 30 * time.Second // for the person to stop typing, so that the text can be taken back
	mostTyped = 80               // of what the person has typed behind the text: more is left where it is
)

// ErrGone means that the program is not in its pane any more.
var ErrGone = errors.New("the program is not in its pane")

// errTyping means that a person is typing.
var errTyping = errors.New("its person types there")

// Way is the box of a program in a pane, as delivery.Way. Only the program's hooks tell that its model has the text.
type Way struct {
	Pane   tmux.Pane
	PID    int // of the program
	Driver *driver.Driver
}

var _ delivery.Way = (*Way)(nil)

// A view is what a pane shows, and what tmux says of it at the same moment.
type view struct {
	driver.Reading
	keys   int64  // the second in which a person last pressed a key there; 0: nobody has
	cursor [2]int // column and row
	why    string // why no key would get to the program; "": it would
	folded string // the draft: see fold
}

const format = "#{pid} #{?pane_dead,1,0} #{?pane_in_mode,1,0} #{?pane_input_off,1,0} #{?pane_synchronized,1,0} " +
	"#{cursor_x} #{cursor_y} #{pane_width} #{pane_height} #{pane_tty}\n#{pane_title}"

// endOfClients is a line between what tmux says and the screen.
const endOfClients = "=atm="

// see looks at the pane: what tmux knows, and the screen, come from one call.
func (w *Way) see(ctx context.Context) (v view, err error) {
	out, err := w.Pane.Call(ctx, "", "display-message", "-p", "-t", w.Pane.ID, format, ";",
		"list-clients", "-F", "#{pane_id} #{client_activity}", ";", "display-message", "-p", endOfClients, ";",
		"capture-pane", "-p", "-e", "-t", w.Pane.ID)
	if errors.Is(err, context.DeadlineExceeded) {
		return v, err
	} else if err != nil {
		return v, fmt.Errorf("%w: %w", ErrGone, err)
	}
	facts, shown, _ := strings.Cut(out, "\n"+endOfClients+"\n")
	lines := strings.Split(facts, "\n")
	var n [9]int
	var tty string
	if _, err := fmt.Sscan(lines[0], &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8], &tty); err != nil || len(lines) < 2 {
		return v, fmt.Errorf("%w: tmux says %q", ErrGone, wire.Clip(lines[0], 80))
	}
	has, isInFront := process.Terminal(w.PID, tty)
	if n[0] != w.Pane.Server || n[1] != 0 || !has {
		return v, ErrGone
	}
	switch {
	case n[2] != 0:
		v.why = "the pane is in a mode of tmux, as its copy mode"
	case n[3] != 0:
		v.why = "the pane's input is off"
	case n[4] != 0:
		v.why = "what is typed goes to several panes"
	case !isInFront:
		v.why = "the program is not in the foreground of its pane"
	}
	for _, line := range lines[2:] {
		if id, at, _ := strings.Cut(line, " "); id == w.Pane.ID {
			second, _ := strconv.ParseInt(at, 10, 64)
			v.keys = max(v.keys, second)
		}
	}
	s := screen.New(n[7], n[8], 1)
	fmt.Fprintf(s, "\x1b]2;%s\a%s\x1b[%d;%dH", lines[1], strings.ReplaceAll(strings.TrimSuffix(shown, "\n"), "\n", "\r\n"), n[6]+1, n[5]+1)
	v.Reading, v.cursor = w.Driver.Read(driver.LookAt(s), driver.Reading{}), [2]int{n[5], n[6]}
	v.folded = fold(v.Draft)
	return v, nil
}

// isTyping reports whether a person has just pressed a key.
func (v *view) isTyping() bool { return time.Since(time.Unix(v.keys, 0)).Abs() < quiet }

// Look returns nil if a text may be pasted now.
func (w *Way) Look(ctx context.Context) error {
	_, err := w.ready(ctx)
	return err
}

func (w *Way) ready(ctx context.Context) (view, error) {
	v, err := w.see(ctx)
	switch {
	case err != nil:
		return v, err
	case v.why != "":
		return v, errors.New(v.why)
	case v.isTyping():
		return v, errTyping
	case !v.Prompt && v.NotPromptReason == control.GateDraft:
		return v, errors.New("there is a draft in its box")
	case !v.Prompt:
		return v, fmt.Errorf("it is not at its prompt (%s)", v.NotPromptReason)
	}
	return v, nil
}

// Put pastes a text and submits it.
func (w *Way) Put(ctx context.Context, t delivery.Text) error {
	text, ok := Typed(w.Driver, t.Body)
	if !ok {
		return errors.New("the program would act on what is in the text")
	}
	first, err := w.ready(ctx)
	if err == nil {
		err = pause(ctx, settle)
	}
	if err != nil {
		return err
	}
	before, err := w.ready(ctx)
	if err != nil {
		return err
	}
	if before.keys != first.keys || before.cursor != first.cursor {
		return errTyping
	}
	ctx = context.WithoutCancel(ctx) // what is begun is ended
	if err := w.paste(ctx, text); err != nil {
		return w.takeBack(ctx, text, err)
	}
	w.await(ctx, drawTime, func(v *view) bool { return v.has(text) || strings.Contains(v.folded, fold(letter.End)) })
	pause(ctx, driver.SubmitDelay(len(text)))
	for _, wait := range []time.Duration{enterTime, drawTime} { // what takes long may yet come
		v, err := w.see(ctx)
		switch {
		case errors.Is(err, ErrGone):
			return err
		case err != nil:
			return w.takeBack(ctx, text, err)
		case v.why != "":
			return w.takeBack(ctx, text, errors.New(v.why))
		case v.keys != before.keys:
			return w.takeBack(ctx, text, errTyping)
		case !v.has(text):
			return w.takeBack(ctx, text, errors.New("its box does not show the text alone"))
		}
		if err := w.enter(ctx, v); err != nil {
			return w.takeBack(ctx, text, err)
		}
		isGone, err := w.await(ctx, wait, func(v *view) bool { return v.why == "" && !v.has(text) })
		if err != nil { // it has ended
			return fmt.Errorf("%w: %w", delivery.ErrUnsure, err)
		}
		if isGone {
			return nil
		}
	}
	return w.takeBack(ctx, text, errors.New("it does not take Enter"))
}

func (w *Way) Has(context.Context, wire.ID) (bool, error)      { return false, delivery.ErrSilent }
func (w *Way) TakeBack(context.Context, wire.ID) (bool, error) { return false, nil }

// Typed returns a text of frames in the form in which a program takes it as data; not ok: there is none.
func Typed(d *driver.Driver, text string) (typed string, ok bool) {
	text = strings.ReplaceAll(letter.Typable(strings.TrimSpace(text)), "\t", "    ")
	text = strings.TrimSuffix(text, letter.End)
	text, legend, ok := d.AsData(text)
	if head, body, _ := strings.Cut(text, "\n"); legend != "" {
		text = head + " (" + legend + ")\n" + body
	}
	return text + letter.End, ok
}

// paste has tmux paste a text, bracketed if the program has asked for that, unless the pane is in a mode. All pieces go in by one
// call, so that no key comes between them.
func (w *Way) paste(ctx context.Context, text string) error {
	var paste, forget []string
	for i, piece := range w.Driver.Pastes(text) {
		buffer := fmt.Sprintf("atm-%s-%d", wire.NewID(), i)
		if _, err := w.Pane.Call(ctx, piece, "load-buffer", "-b", buffer, "-"); err != nil {
			return err
		}
		paste, forget = append(paste, "paste-buffer -p -r -d -b "+buffer+" -t "+w.Pane.ID), append(forget, "delete-buffer -b "+buffer)
	}
	_, err := w.Pane.Call(ctx, "", "if-shell", "-F", "-t", w.Pane.ID, "#{pane_in_mode}", strings.Join(forget, " ; "), strings.Join(paste, " ; "))
	return err
}

// enter presses Enter, unless the pane is in a mode or the cursor is not where it was.
func (w *Way) enter(ctx context.Context, v view) error {
	is := fmt.Sprintf("#{&&:#{==:#{cursor_x},%d},#{&&:#{==:#{cursor_y},%d},#{?pane_in_mode,0,1}}}", v.cursor[0], v.cursor[1])
	out, err := w.Pane.Call(ctx, "", "if-shell", "-F", "-t", w.Pane.ID, is, "send-keys -t "+w.Pane.ID+" Enter", "display-message -p no")
	if err == nil && out != "" {
		err = errTyping
	}
	return err
}

// await looks until something holds, and reports whether it does in time. The error is ErrGone.
func (w *Way) await(ctx context.Context, d time.Duration, holds func(*view) bool) (bool, error) {
	for end := time.Now().Add(d); ; pause(ctx, poll) {
		v, err := w.see(ctx)
		if errors.Is(err, ErrGone) || err == nil && holds(&v) {
			return err == nil, err
		}
		if time.Now().After(end) {
			return false, nil
		}
	}
}

// has reports whether the box has a text and nothing else: all of it, its end if the box shows no more, or what stands for a
// paste.
func (v *view) has(text string) bool {
	const enough = 100
	return driver.IsPaste(v.Draft) || v.folded == fold(text) || len(v.folded) >= enough && strings.HasSuffix(fold(text), v.folded)
}

// fold leaves of a text what every program shows as it is.
func fold(text string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c > unicode.MaxASCII {
			return -1
		}
		return c
	}, text)
}

// takeBack deletes a text that was pasted from the box, and returns why: the program does not have it. What a person has typed
// before it stays; what they have typed behind it is deleted with it, and pasted again. It waits until the keys have stopped.
func (w *Way) takeBack(ctx context.Context, text string, why error) error {
	unsure := fmt.Errorf("%w: it is left in its box: %w", delivery.ErrUnsure, why)
	v, isStill := w.still(ctx)
	start := strings.Index(v.folded, fold(text))
	before, ours, behind := "", utf8.RuneCountInString(text), ""
	switch {
	case isStill && driver.IsPaste(v.Draft):
		ours = 1 // one key deletes what stands for it
	case isStill && start >= 0:
		end := strings.LastIndex(v.Draft, letter.End) + len(letter.End)
		if end < len(letter.End) {
			return unsure
		}
		before, behind = v.folded[:start], strings.ReplaceAll(v.Draft[end:], "\n", "")
	default:
		return unsure
	}
	keys := ours + utf8.RuneCountInString(behind)
	if keys-ours > mostTyped {
		return unsure
	}
	if before == "" {
		keys += keys / 8 // what the program has made of blanks; in an empty box the key does nothing
	}
	for range 5 {
		if _, err := w.Pane.Call(ctx, "", "send-keys", "-t", w.Pane.ID, "-N", strconv.Itoa(keys), "BSpace"); err != nil {
			return unsure
		}
		last := v.keys
		if v, isStill = w.still(ctx); !isStill || v.keys != last {
			return unsure
		}
		rest, isRest := strings.CutPrefix(v.folded, before)
		if !isRest || !strings.HasPrefix(fold(text), rest) {
			return unsure
		}
		if keys = len(rest); keys == 0 {
			if behind != "" {
				w.paste(ctx, behind)
			}
			return why
		}
	}
	return unsure
}

// still returns what the pane shows when keys would get to the program and nothing has changed for a second.
func (w *Way) still(ctx context.Context) (last view, ok bool) {
	since := time.Now()
	for end := since.Add(stillTime); time.Now().Before(end); pause(ctx, 5*poll) {
		v, err := w.see(ctx)
		if errors.Is(err, ErrGone) {
			return v, false
		}
		if err != nil || v.why != "" || v.keys != last.keys || v.Draft != last.Draft || v.cursor != last.cursor {
			since = time.Now()
		}
		if last = v; time.Since(since) >= time.Second {
			return last, v.NotPromptReason == control.GateDraft || v.Prompt
		}
	}
	return last, false
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}
