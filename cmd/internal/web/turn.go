package web

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// A turn is one of an agent, as its page shows it.
type turn struct{ history.FullTurn }

// turns returns a member's turns, the newest first.
func (p *page) turns(name wire.Name) (out []turn, err error) {
	turns, err := p.server.Turns(name)
	for _, t := range slices.Backward(turns) {
		out = append(out, turn{t})
	}
	return out, err
}

// Seq tells it from the agent's others.
func (t turn) Seq() uint64 { return cmp.Or(t.BeganBy.Seq, t.EndedBy.Seq) }

// A saying is a piece of what a turn began with: a message, which a frame gave to the model, or other text.
type saying struct {
	From, ID string // of a message; "": it is none
	Text     string
}

// frame is the first line of a message's frame: see letter.Renderer.Frame.
var frame = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[atm ([0-9a-f]{6,32}) from ([^ ,\]]+)[,\]]`) })

// Said splits the prompt at the frames of messages, which are for the model.
func (t turn) Said() (all []saying) {
	isIn := false // a frame
	for line := range strings.Lines(t.Prompt) {
		start := frame().FindStringSubmatch(line)
		body, isBody := strings.CutPrefix(line, "  ")
		switch {
		case start != nil && !strings.Contains(line, letter.End): // else a program has made one line of it
			isIn = true
			all = append(all, saying{From: start[2], ID: start[1]})
		case isIn && (isBody || strings.TrimSpace(line) == ""):
			all[len(all)-1].Text += body
		case isIn && strings.HasPrefix(line, "[atm"): // what atm says of it
		case isIn && strings.TrimSpace(line) == letter.End:
			isIn = false
		default:
			if isIn || len(all) == 0 || all[len(all)-1].ID != "" {
				all = append(all, saying{})
			}
			isIn = false
			all[len(all)-1].Text += line
		}
	}
	for i := range all {
		all[i].Text = strings.Trim(all[i].Text, "\n")
	}
	return slices.DeleteFunc(all, func(s saying) bool { return s.ID == "" && s.Text == "" })
}
