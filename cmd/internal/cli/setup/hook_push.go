package setup

import (
	"context"

	"github.com/agentteammail/atm/cmd/internal/hook"
	"github.com/agentteammail/atm/ptyrun/control"
)

// takePushed takes what the agent's runner pushes through this program's plugin. isPeek: it only asks whether there is
// something.
func (h *hookCall) takePushed(isPeek bool) hook.Push {
	p := h.askRunner(control.PushedRequest{Takes: !isPeek})
	return hook.Push{Watch: p.Watch, Waiting: p.Waiting, Text: p.Text}
}

// tellPushed tells the runner what the model has.
func (h *hookCall) tellPushed(shown string) { h.askRunner(control.PushedRequest{Shown: shown}) }

// askRunner returns nothing if the runner does not answer soon: then it types its mail.
func (h *hookCall) askRunner(req control.PushedRequest) (p control.Pushed) {
	ctx, cancel := context.WithTimeout(context.Background(), hookInput)
	defer cancel()
	c, err := h.scope.Team.DialRunner(ctx, h.scope.Me.Agent())
	if err != nil {
		return p
	}
	defer c.Close()
	p, _ = c.Pushed(ctx, req)
	return p
}
