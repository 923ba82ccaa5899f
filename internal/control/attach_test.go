//go:build linux || darwin

package control

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// window is a test's terminal.
type window struct {
	in    chan []byte
	sizes chan Size
	mu    sync.Mutex
	seen  bytes.Buffer
	conn  *connection
	stuck chan struct{} // it shows nothing until this is closed
	waits chan struct{} // gets something when it should show the first bytes
}

func newWindow() *window { return &window{in: make(chan []byte), sizes: make(chan Size)} }

func (w *window) Write(p []byte) (int, error) {
	if w.stuck != nil {
		select {
		case w.waits <- struct{}{}:
		default:
		}
		<-w.stuck
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Write(p)
}

func (w *window) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.String()
}

func (w *window) shows(t *testing.T, want string) {
	t.Helper()
	eventually(t, "it does not show "+want, func() bool { return strings.HasSuffix(w.String(), want) })
}

// join attaches; the channel gets the result.
func (w *window) join(t *testing.T, ctx context.Context, dir string, readOnly bool) <-chan Ending {
	t.Helper()
	c, out := dial(t, dir), make(chan Ending, 1)
	w.conn = c.conn
	go func() {
		e, err := c.Attach(ctx, AttachRequest{Cols: 80, Rows: 24, ReadOnly: readOnly}, Terminal{In: w.in, Out: w, Sizes: w.sizes})
		e.err = err
		out <- e
	}()
	return out
}

// room is a runner that shows all viewers what any of them types, and repaints on request.
type room struct {
	fake
	mu      sync.Mutex
	viewers map[*Viewer]bool
	sizes   []Size
	exit    chan struct{}
}

func newRoom() *room {
	r := &room{viewers: map[*Viewer]bool{}, exit: make(chan struct{})}
	r.attach = r.serve
	return r
}

func (r *room) serve(ctx context.Context, req AttachRequest, v *Viewer) error {
	r.mu.Lock()
	v.Send([]byte("hello"))
	r.viewers[v] = true
	r.sizes = append(r.sizes, Size{req.Cols, req.Rows})
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.viewers, v)
		r.mu.Unlock()
	}()
	for {
		select {
		case in, ok := <-v.Input():
			if !ok {
				return nil
			}
			r.took(v, in)
		case <-r.exit:
			r.mu.Lock()
			v.Send([]byte("bye"))
			r.mu.Unlock()
			v.Exit(143, "terminated")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *room) took(v *Viewer, in Input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.Size.Cols > 0 {
		r.sizes = append(r.sizes, in.Size)
	}
	if in.Repaint {
		v.Repaint([]byte("SCREEN"))
	}
	for o := range r.viewers {
		o.Send(in.Bytes)
	}
}

// The help line stays until the next key, which asks for a repaint.
func TestShowsKeys(t *testing.T) {
	dir, w := t.TempDir(), newWindow()
	start(t, dir, newRoom())
	w.join(t, t.Context(), dir, false)
	w.shows(t, "hello")
	w.in <- []byte("\x1c?")
	w.shows(t, keysLine)
	w.in <- []byte("x")
	w.shows(t, "\x18SCREENx")
}

// The end of the context detaches like the key; the server's end, a Handler's error and a terminal's error end an
// attachment.
func TestAttachEnds(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, newRoom())
	ctx, cancel := context.WithCancel(t.Context())
	a, b := newWindow(), newWindow()
	end := a.join(t, ctx, dir, false)
	a.shows(t, "hello")
	cancel()
	if e := <-end; e.err != nil || !e.Detached || e.TerminalGone {
		t.Errorf("%+v", e)
	}
	broken := errors.New("broken")
	if _, err := dial(t, dir).Attach(t.Context(), AttachRequest{Cols: 9, Rows: 9}, Terminal{Out: brokenTerminal{broken}}); !errors.Is(err, broken) {
		t.Error(err)
	}
	end = b.join(t, t.Context(), dir, false)
	b.shows(t, "hello")
	s.Close()
	if e := <-end; e.err != nil || e.Detached || e.Reason != "the runner is stopping" {
		t.Errorf("%+v", e)
	}
	other := t.TempDir()
	start(t, other, &fake{attach: func(context.Context, AttachRequest, *Viewer) error { return errors.New("not now") }})
	if e := <-newWindow().join(t, t.Context(), other, false); e.err != nil || e.Reason != "not now" {
		t.Errorf("%+v", e)
	}
}

type brokenTerminal struct{ err error }

func (b brokenTerminal) Write([]byte) (int, error) { return 0, b.err }

// Output for a slow viewer is dropped, and the viewer asks for a repaint. Nobody else waits for it.
func TestSlowViewer(t *testing.T) {
	dir, behind, asked, w := t.TempDir(), make(chan struct{}), make(chan struct{}), newWindow()
	w.stuck, w.waits = make(chan struct{}), make(chan struct{}, 1)
	start(t, dir, &fake{attach: func(ctx context.Context, _ AttachRequest, v *Viewer) error {
		v.Send([]byte("first\n"))
		<-w.waits // else it would get the gap before anything to show
		for !v.IsBehind() {
			v.Send([]byte("0123456789abcde\n"))
		}
		close(behind)
		for in := range v.Input() {
			if in.Repaint {
				break
			}
		}
		if v.Send([]byte("lost")); !v.IsBehind() {
			t.Error("no longer behind")
		}
		v.Repaint([]byte("the screen"))
		v.Send([]byte(", and more"))
		close(asked)
		<-ctx.Done()
		return nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	end := w.join(t, ctx, dir, false)
	<-behind
	select {
	case <-asked:
		t.Error("it asked though it shows nothing")
	case <-time.After(50 * time.Millisecond):
	}
	w.conn.SetWriteDeadline(time.Unix(1, 0)) // the last key was long ago
	close(w.stuck)
	w.shows(t, "\x18the screen, and more")
	if strings.Contains(w.String(), "lost") {
		t.Error("it shows what was left out")
	}
	cancel()
	if e := <-end; e.err != nil || !e.Detached {
		t.Errorf("%+v", e)
	}
}

// Typed keys are told from a terminal's reports and replies, in whatever pieces they come; a key that looks like the
// beginning of a reply does not swallow the keys after it.
func TestWhoTyped(t *testing.T) {
	now := time.Now()
	type piece struct {
		in     string
		after  time.Duration
		out    string
		person bool
	}
	for name, pieces := range map[string][]piece{
		"keys":              {{"ab\r", 0, "ab\r", true}},
		"escape":            {{"\x1b", 0, "", false}, {"", time.Second, "\x1b", true}},
		"escape, then keys": {{"\x1b", 0, "", false}, {"a", time.Second, "\x1ba", true}},
		"torn after ESC":    {{"\x1b", 0, "", false}, {"[?62;22c", 10 * time.Millisecond, "", false}},
		"torn in its end":   {{"\x1b]11;rgb:0/0/0\x1b", 0, "", false}, {"\\", 10 * time.Millisecond, "", false}},
		"old mouse, torn":   {{"\x1b[M !", 0, "", false}, {"!", 10 * time.Millisecond, "\x1b[M !!", false}},
		"arrow":             {{"\x1b[A", 0, "\x1b[A", true}},
		"focus":             {{"\x1b[I", 0, "\x1b[I", false}},
		"mouse":             {{"\x1b[<0;3;4M", 0, "\x1b[<0;3;4M", false}},
		"old mouse":         {{"\x1b[M !!", 0, "\x1b[M !!", false}},
		"attributes":        {{"\x1b[?62;22c", 0, "", false}},
		"answer in pieces":  {{"\x1b[?6", 0, "", false}, {"2;22c", 10 * time.Millisecond, "", false}},
		"colour":            {{"\x1b]11;rgb:0/0/0\x1b\\x", 0, "x", true}},
		"Alt-P, then words": {{"\x1bP", 0, "", false}, {"hello", time.Second, "\x1bPhello", true}},
		"Alt-[, then words": {{"\x1b[", 0, "", false}, {"A", time.Second, "\x1b[A", true}},
		"paste":             {{"\x1b[200~x\x1b[201~", 0, "\x1b[200~x\x1b[201~", true}},
	} {
		var k keyScanner
		at := now
		for _, p := range pieces {
			at = at.Add(p.after)
			in, _, _ := k.scan([]byte(p.in), at)
			if isPerson := len(in.Bytes) > 0 && !in.IsReport; string(in.Bytes) != p.out || isPerson != p.person {
				t.Errorf("%s: of %q comes %+v", name, p.in, in)
			}
		}
	}
}

func TestDetachKey(t *testing.T) {
	for _, test := range []struct {
		in   []string
		want string // "!": the viewer detaches, "?": the help line is shown
	}{
		{[]string{"ls\r"}, "ls\r"},
		{[]string{"\x1cd rest"}, "!"},
		{[]string{"a\x1c", "d"}, "a!"},
		{[]string{"\x1c", "x"}, "\x1cx"}, // another key is sent with it
		{[]string{"\x1c\x1c", "d"}, "\x1c!"},
		{[]string{"\x1c", "\x1b[A"}, "\x1c\x1b[A"},
		{[]string{"\x1c?", "d"}, "?d"},
		{[]string{"\x1b", "d"}, "\x1bd"},
		{[]string{"ü\xff"}, "ü\xff"},
		{[]string{"\x1b[200~\x1cd\x1b[201~x"}, "\x1b[200~\x1cd\x1b[201~x"}, // a paste
		// Reports between the keys are not keys.
		{[]string{"\x1c", "\x1b[I", "\x1b[<0;3;4M", "\x1b[M d!", "\x1b[?62;22c", "\x1b]11;rgb:0/0/0\x1b\\", "d"}, "\x1b[I\x1b[<0;3;4M\x1b[M d!!"},
		// From kitty: with releases, Num Lock, alternate keys, all keys as sequences.
		{[]string{"\x1b[92;5u", "\x1b[92;5:3u", "d"}, "\x1b[92;5:3u!"},
		{[]string{"\x1b[92;133:1u", "\x1b[100;129u"}, "!"},
		{[]string{"\x1b[57442;5u\x1b[92::92;5u\x1b[57442;1:3u\x1b[100;1:1u"}, "\x1b[57442;5u\x1b[57442;1:3u!"},
		{[]string{"\x1b[92;5u", "\x1b[57441;2u", "\x1b[47:63;2u"}, "\x1b[57441;2u?"},
		{[]string{"\x1b[92;5u", "\x1b[100;5u"}, "\x1b[92;5u\x1b[100;5u"}, // Ctrl-d
		// From xterm's modifyOtherKeys.
		{[]string{"\x1b[27;5;92~", "d"}, "!"},
	} {
		var k keyScanner
		got, now := "", time.Now()
		for _, p := range test.in {
			in, help, detach := k.scan([]byte(p), now)
			got += string(in.Bytes)
			if help {
				got += "?"
			}
			if detach {
				got += "!"
				break
			}
		}
		if got != test.want {
			t.Errorf("of %q comes %q, not %q", test.in, got, test.want)
		}
	}
}
