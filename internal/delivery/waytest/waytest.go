// Package waytest proves that a way into a program keeps what delivery.Way promises. That a text which is given twice says
// so is the promise of those who carry it: the table's effect Repeat.
//
// Where the program looks into the inbox itself, with its hooks or a plugin, there is no type that is a Way, since nobody
// puts anything there: a test's own delivers and withdraws (package cmd/internal/hook).
package waytest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/wire"
)

// A Program is a pretended program, and the way into it. What it has none of is nil.
type Program struct {
	Way   delivery.Way
	Acted func() []string // what it has acted on, a text each

	Shut   func()               // makes it take nothing
	Ask    func()               // has it ask something
	Asks   func() bool          // reports whether it still does
	Hold   func() (goOn func()) // has it keep what it is given, until goOn
	Refuse func()               // has it refuse the next text
	Hang   func()               // has it take the next text and not say so
}

// patience is for what must happen.
const patience = time.Minute

// Test proves a way on a fresh program for each promise.
func Test(t *testing.T, start func(t *testing.T) *Program) {
	for name, promise := range map[string]func(*prover){
		"what is put is acted on once": (*prover).put,
		"a shut way says why":          (*prover).shut,
		"nothing answers a dialog":     (*prover).ask,
		"what was taken back is gone":  (*prover).takeBack,
		"what was acted on is not":     (*prover).takeBackLate,
		"what was refused is not in":   (*prover).refuse,
		"what may be in is unsure":     (*prover).hang,
	} {
		t.Run(name, func(t *testing.T) {
			p := &prover{t, start(t)}
			p.wait("the way to be open", p.isOpen)
			promise(p)
		})
	}
}

type prover struct {
	*testing.T
	*Program
}

// text is a text that begins with a message of its own.
func text(words string) delivery.Text {
	id := wire.NewID()
	return delivery.Text{ID: id, From: "alice", Body: fmt.Sprintf("%s %s", id.Short(8), words)}
}

func (p *prover) isOpen() bool { return p.Way.Look(p.Context()) == nil }

// mustPut puts a text as soon as the way is open.
func (p *prover) mustPut(words string) delivery.Text {
	p.Helper()
	one := text(words)
	p.wait("the way to be open", p.isOpen)
	if err := p.Way.Put(p.Context(), one); err != nil {
		p.Fatalf("put: %v", err)
	}
	return one
}

func (p *prover) wait(what string, holds func() bool) {
	p.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("waited in vain for %s; it has acted on %q", what, p.Acted())
		}
	}
}

// times returns how often the program has acted on a text.
func (p *prover) times(one delivery.Text) (n int) {
	for _, acted := range p.Acted() {
		n += strings.Count(acted, one.Body)
	}
	return n
}

// later puts another text, and returns when the program has acted on it. What it has not acted on by then it has not got.
func (p *prover) later() {
	p.Helper()
	one := p.mustPut("is later")
	p.wait("the later text", func() bool { return p.times(one) > 0 })
}

func (p *prover) skipWithout(control func()) {
	if control == nil {
		p.Skip("this program cannot do that")
	}
}

func (p *prover) put() {
	one := p.mustPut("is the first")
	p.wait("the text", func() bool { return p.times(one) > 0 })
	p.wait("its receipt", func() bool {
		has, err := p.Way.Has(p.Context(), one.ID)
		if err != nil && !errors.Is(err, delivery.ErrSilent) {
			p.Fatalf("has: %v", err)
		}
		return has || err != nil
	})
	if has, err := p.Way.Has(p.Context(), wire.NewID()); has || err != nil && !errors.Is(err, delivery.ErrSilent) {
		p.Errorf("it has what was never put: %v, %v", has, err)
	}
	p.later()
	if n := p.times(one); n != 1 {
		p.Errorf("it has acted %d times", n)
	}
}

func (p *prover) shut() {
	p.skipWithout(p.Shut)
	p.Shut()
	var why error
	p.wait("the way to be shut", func() bool { why = p.Way.Look(p.Context()); return why != nil })
	if why.Error() == "" || strings.Contains(why.Error(), "\n") {
		p.Errorf("why is %q", why)
	}
	one := text("is too early")
	p.Way.Put(p.Context(), one)
	if n := p.times(one); n > 0 {
		p.Error("it has acted while it was shut")
	}
}

func (p *prover) ask() {
	p.skipWithout(p.Ask)
	p.Ask()
	p.wait("the question", p.Asks)
	one := text("1")
	p.Way.Put(p.Context(), one)
	if !p.Asks() || p.times(one) > 0 {
		p.Error("a text was given into a question")
	}
}

func (p *prover) takeBack() {
	if p.Hold == nil {
		p.Skip("this program acts at once")
	}
	goOn := p.Hold()
	one := text("is taken back")
	if err := p.Way.Put(p.Context(), one); err != nil {
		p.Fatalf("put: %v", err)
	}
	isBack, err := p.Way.TakeBack(p.Context(), one.ID)
	if err != nil {
		p.Fatalf("take back: %v", err)
	}
	if !isBack {
		p.Log("nothing recalls it")
	}
	if again, err := p.Way.TakeBack(p.Context(), one.ID); again || err != nil {
		p.Errorf("taken back twice: %v, %v", again, err)
	}
	goOn()
	p.later()
	if n := p.times(one); isBack && n > 0 || n > 1 {
		p.Errorf("taken back: %v, and it has acted %d times", isBack, n)
	}
}

func (p *prover) takeBackLate() {
	one := p.mustPut("is acted on")
	p.wait("the text", func() bool { return p.times(one) > 0 })
	if isBack, err := p.Way.TakeBack(p.Context(), one.ID); isBack || err != nil {
		p.Errorf("taken back: %v, %v", isBack, err)
	}
}

func (p *prover) refuse() {
	p.skipWithout(p.Refuse)
	p.Refuse()
	one := text("is refused")
	if err := p.Way.Put(p.Context(), one); delivery.EventOf(err) != delivery.NotIn {
		p.Errorf("put: %v", err)
	}
	p.later()
	if n := p.times(one); n > 0 {
		p.Errorf("it has acted %d times", n)
	}
}

func (p *prover) hang() {
	p.skipWithout(p.Hang)
	p.Hang()
	one := text("may be in")
	if err := p.Way.Put(p.Context(), one); !errors.Is(err, delivery.ErrUnsure) {
		p.Errorf("put: %v", err)
	}
	if has, err := p.Way.Has(p.Context(), one.ID); !has && err == nil {
		p.later()
		if p.times(one) > 0 {
			p.Error("it said that it has not what it acted on")
		}
	}
}
