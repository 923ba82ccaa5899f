//go:build linux || darwin

package claude

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/delivery/waytest"
)

// A pretended session takes one line of each connection.
type pretended struct {
	mu    sync.Mutex
	mode  string   // "", "refuse", "hang"
	held  bool     // it does not act
	has   []string // contents that it has not acted on
	acted []string
}

func (p *pretended) serve(c *net.UnixConn) {
	p.mu.Lock()
	mode := p.mode
	p.mode = ""
	p.mu.Unlock()
	switch mode {
	case "refuse":
		c.Read(make([]byte, 1))
		c.Close()
		return
	case "hang":
		ignore(c)
		return
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	var m struct{ Message struct{ Content string } }
	if err == nil && json.Unmarshal([]byte(line), &m) == nil {
		p.mu.Lock()
		p.has = append(p.has, m.Message.Content)
		p.act()
		p.mu.Unlock()
	}
	io.Copy(io.Discard, c)
	c.Close()
}

func (p *pretended) act() {
	if !p.held {
		p.acted, p.has = append(p.acted, p.has...), nil
	}
}

func (p *pretended) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// The person sees the first line.
func TestFirstLine(t *testing.T) {
	p := &pretended{}
	w := Way{inbox(t, p.serve, nil)}
	for text, want := range map[string]string{
		"[atm 9f3a1c from bob, now] answer: atm reply 9f3a1c \"…\"\n  Rebase,\n  please.\n[/atm]\n": "[atm 9f3a1c from bob, now] answer: atm reply 9f3a1c \"…\"; text: Rebase,\n  please.\n[/atm]\n",
		"[atm 9f3a1c from bob, now, acks 123456]\n[/atm]\n":                                         "[atm 9f3a1c from bob, now, acks 123456]\n[/atm]\n",
		"Rebase,\n  please.": "Rebase,\n  please.",
	} {
		p.set(func() { p.acted = nil })
		if err := w.Put(t.Context(), delivery.Text{From: "bob", Body: text}); err != nil {
			t.Fatal(err)
		}
		p.set(func() {
			if len(p.acted) != 1 || !strings.Contains(p.acted[0], ">\n"+want+"\n<") {
				t.Errorf("%q, not %q", p.acted, want)
			}
		})
	}
}

func TestWay(t *testing.T) {
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		p := &pretended{}
		s := inbox(t, p.serve, nil)
		return &waytest.Program{
			Way: Way{s},
			Acted: func() (all []string) {
				p.set(func() { all = slices.Clone(p.acted) })
				return all
			},
			Shut: func() { set(t, s, `{"crossSessionInbound":"hold"}`) },
			Hold: func() (goOn func()) {
				p.set(func() { p.held = true })
				return func() { p.set(func() { p.held = false; p.act() }) }
			},
			Refuse: func() { p.set(func() { p.mode = "refuse" }) },
			Hang:   func() { p.set(func() { p.mode = "hang" }) },
		}
	})
}
