package ptyrun

import (
	"testing"
	"time"
)

// A terminal's own reports do not count as a person's typing, however long a text takes to type.
func TestReportIsNoPerson(t *testing.T) {
	r := &runner{Options: Options{now: time.Now}}
	p := &terminal{r: r, input: make(chan write, 2)}
	r.prog = &program{agent: p}
	typing := &typing{startedAt: time.Now().Add(-maxKeyHold)}
	r.mail.giving = &giving{typing: typing}
	if r.passKeys([]byte("\x1b[I"), false); typing.isMixed || len(p.input) != 1 {
		t.Error("a report of focus is mixed with the text")
	}
	if r.passKeys([]byte("x"), true); !typing.isMixed {
		t.Error("a person's key is not")
	}
}
