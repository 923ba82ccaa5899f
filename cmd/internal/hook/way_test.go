package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// A looker pretends to be a program that looks into its member's inbox, and the way into it: to put a text is to deliver
// it, and to take it back is to withdraw it. Nothing refuses a text so, or leaves open whether it is in.
type looker struct {
	t    *testing.T
	bob  *member
	look func() // what it does when something has changed

	mu     sync.Mutex
	isShut bool // another program is its member
	asks   bool
	isHeld bool     // it does not act
	has    []string // what it has not acted on
	acted  []string
}

func (p *looker) Look(context.Context) error {
	if p.isShut {
		return errors.New("another program is bob")
	}
	return nil
}

func (p *looker) Put(_ context.Context, text delivery.Text) error {
	mail(p.t, p.bob, text.Body, func(m *wire.Message) { m.ID = text.ID })
	p.look()
	return nil
}

func (p *looker) Has(_ context.Context, id wire.ID) (bool, error) {
	it, err := p.bob.Get(id)
	if errors.Is(err, mailbox.ErrNotFound) {
		return false, nil
	}
	return err == nil && it.State == wire.Done, err
}

func (p *looker) TakeBack(ctx context.Context, id wire.ID) (bool, error) {
	was, err := p.bob.Withdraw(ctx, id, wire.Address{Agent: "alice", Team: "main"})
	return was == wire.Unread, err
}

func (p *looker) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	if !p.isHeld {
		p.acted, p.has = append(p.acted, p.has...), nil
	}
}

// call calls the program's hook, which has what textOf finds in the answer.
func (p *looker) call(tool, in string, textOf func(out string) string) (text string) {
	var out strings.Builder
	c := called(p.bob, tool, &out, io.Discard)
	c.IsSecond = p.isShut
	if _, err := c.handle(ctx, []byte(in)); err != nil {
		p.t.Errorf("%s: %v", in, err)
	}
	if text = textOf(out.String()); text != "" {
		p.set(func() { p.has = append(p.has, text) })
	}
	return text
}

func (p *looker) program() *waytest.Program {
	return &waytest.Program{
		Way: p,
		Acted: func() (all []string) {
			p.set(func() { all = slices.Clone(p.acted) })
			return all
		},
		Shut: func() { p.set(func() { p.isShut = true }) },
		Ask:  func() { p.set(func() { p.asks = true }) },
		Asks: func() bool { return p.asks },
		Hold: func() (goOn func()) {
			p.set(func() { p.isHeld = true })
			return func() { p.set(func() { p.isHeld = false }); p.look() }
		},
	}
}

// The context that a hook adds is a way at each of a turn's calls that carry mail.
func TestHookContextIsAWay(t *testing.T) {
	for tool, turn := range map[string][]string{
		Claude: {"UserPromptSubmit", "PostToolBatch", "Stop", "Stop"},
		Codex:  {"UserPromptSubmit", "PostToolUse", "Stop", "Stop"},
		Gemini: {"BeforeAgent", "AfterTool", "AfterAgent", "AfterAgent"},
	} {
		fields := []string{`,"prompt":"go on"`, `,"tool_name":"ls","tool_use_id":"#","tool_calls":[#]`, `,"stop_hook_active":false`, `,"stop_hook_active":true`}
		for first, event := range turn[:3] {
			t.Run(tool+" "+event, func(t *testing.T) {
				waytest.Test(t, func(t *testing.T) *waytest.Program {
					p := &looker{t: t, bob: team(t)}
					turns := 0
					call := func(i int, more string) string {
						in := calledWith(tool, turn[i], strings.ReplaceAll(fields[i], "#", fmt.Sprint(turns))+more)
						return p.call(tool, strings.Replace(in, `"p1"`, fmt.Sprintf(`"p%d"`, turns), 1), func(out string) string {
							text, _ := answerOf(t, out)
							return text
						})
					}
					next := 0
					step := func() {
						text := call(next, "")
						if next++; next == 4 || next == 3 && text == "" {
							next = 0
							turns++
						}
					}
					p.look = func() {
						if p.asks {
							call(1, `,"agent_id":"a"`) // its sub-agent goes on
							return
						}
						for range turn {
							if len(p.has) == 0 {
								step()
							}
						}
					}
					for next != first {
						step()
					}
					program := p.program()
					if tool == Gemini { // whose sub-agents call no hooks
						program.Ask = nil
					}
					return program
				})
			})
		}
	}
}

// OpenCode's plugin is a way: it puts what the hook gives it into the session, and tells what the model gets.
func TestPluginIsAWay(t *testing.T) {
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		p := &looker{t: t, bob: team(t)}
		told := 0
		p.look = func() {
			p.call(OpenCode, `{"type":"atm.mail","pushes":true,"properties":{"sessionID":"s1"}}`, func(out string) string {
				var a pushAnswer
				if err := json.Unmarshal([]byte(out), &a); err != nil {
					t.Errorf("%q: %v", out, err)
				}
				return a.Text
			})
			for _, text := range p.acted[told:] {
				shows(t, p.bob, "s1", text, time.Now())
			}
			told = len(p.acted)
		}
		program := p.program()
		program.Ask = func() { p.set(func() { p.asks, p.isHeld = true, true }) } // the text waits behind the dialog
		return program
	})
}
