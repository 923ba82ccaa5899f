package terminal

import (
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer/ask"
)

// Type types the text of a request, and presses the key that sends it off, if the request asks for that. While the program
// asks something, perhaps a dialog that can be read, mayAnswer says why the text may not be typed: it may be an answer. It
// runs beside the loop.
func (p *Terminal) Type(req control.TypeRequest, mayAnswer func(*ask.Question) error) (done control.Outcome, err error) {
	r := p.r
	typed, err := loop.In(r.Loop, func() (*requestedText, error) {
		switch {
		case !p.isCurrent():
			return nil, run.ErrNotRunning
		case p.typed() != nil:
			return nil, run.ErrBeingTyped
		}
		p.Refresh()
		return p.typeRequested(req, mayAnswer)
	})
	if err != nil {
		return done, err
	}
	done = control.Outcome{Done: "typed", Detail: letter.Many(len(req.Text), "byte")}
	if len(req.Text) == 0 {
		done.Detail = "return"
	}
	done.NotSubmitted = !req.Enter && !req.Raw
	if err := <-typed.written; err != nil || !req.Enter {
		return done, err
	}
	if n := len(typed.data); n > 0 { // some programs swallow a return key right behind a text
		r.Poll(r.Timing.Render, func() bool { return !p.isCurrent() || p.hasText(typed) })
		time.Sleep(r.Timing.BeforeReturn + driver.SubmitDelay(n))
	}
	return loop.In(r.Loop, func() (control.Outcome, error) {
		if !p.isCurrent() {
			return done, errors.New("its program has ended: the return key was not pressed")
		}
		p.Refresh()
		return done, p.submit(typed)
	})
}

func (p *Terminal) isCurrent() bool { return p.r.Agent == run.Agent(p) }

// requestedText is a text that a request has typed.
type requestedText struct {
	text    string // "": raw keys, of which a box shows nothing
	data    []byte
	dialog  string     // fingerprint of the dialog on the screen at that moment
	written chan error // gets the result of writing it
}

// typeRequested types the text, without a key that sends it off.
func (p *Terminal) typeRequested(req control.TypeRequest, mayAnswer func(*ask.Question) error) (*requestedText, error) {
	r, d := p.r, p.reading.Dialog
	if !req.Raw && p.isUnread() {
		return nil, control.Refused("its prompt may still hold a message: nothing was typed", run.TryScreen, run.TryAttach, run.TryRaw)
	}
	if p.isAsking() && !p.driver.Plain {
		if err := mayAnswer(d); err != nil {
			return nil, err
		}
	}
	t := &requestedText{data: req.Text, dialog: fingerprint(d), written: make(chan error, 1)}
	if !req.Raw {
		if !p.takesText() && len(req.Text) > control.MaxLine() {
			return nil, control.Refused(untypable(string(req.Text), false) + ": nothing was typed")
		}
		t.text = letter.Typable(string(req.Text))
		if t.data = p.keysOf(t.text); len(req.Text) <= 1 { // a pasted key answers nothing
			t.data = []byte(keysOf(t.text, false, p.driver.Plain))
		}
	}
	r.LastKey = r.Now()
	p.send(write{t.data, func(n int, err error) {
		if err != nil {
			err = fmt.Errorf("the program stopped reading after %d of %d bytes", n, len(t.data))
		}
		t.written <- err
	}})
	return t, nil
}

// hasText reports whether the box shows a text that a request has typed, as far as a box shows it.
func (p *Terminal) hasText(typed *requestedText) bool {
	return typed.text == "" || typed.dialog != "" || p.driver.HasInBox(p.look(), typed.text)
}

func (p *Terminal) submit(typed *requestedText) error {
	if now := fingerprint(p.reading.Dialog); now != "" && now != typed.dialog { // the return key would answer it
		return errors.New("a dialog came up: the return key was not pressed")
	}
	p.sendKeys([]byte(returnKey))
	return nil
}
