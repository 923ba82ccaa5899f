//go:build linux || darwin

package acp

import (
	"context"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

// opened is a session that was opened.
type opened struct {
	id     acp.SessionId
	source string // startup, or resume where it was loaded
}

// openSession loads the session that an earlier start in this run had, if the agent can, else begins one.
// It runs beside the loop.
func (f *front) openSession(ctx context.Context, hello acp.InitializeResponse) (opened, error) {
	none := []acp.McpServer{}
	if last := acp.SessionId(f.lastSession()); last != "" && hello.AgentCapabilities.LoadSession {
		r, err := f.conn.LoadSession(ctx, acp.LoadSessionRequest{Meta: f.Session.meta(), Cwd: f.Dir, McpServers: none, SessionId: last})
		if err == nil {
			f.chooseModel(ctx, last, r.Models, r.ConfigOptions)
			return opened{last, "resume"}, nil
		}
		f.post(func() { f.screen.say(note, fmt.Sprintf("session %s cannot be loaded: %v", last, err)) })
	}
	r, err := f.conn.NewSession(ctx, acp.NewSessionRequest{Meta: f.Session.meta(), Cwd: f.Dir, McpServers: none})
	if err == nil {
		f.chooseModel(ctx, r.SessionId, r.Models, r.ConfigOptions)
	}
	return opened{r.SessionId, "startup"}, err
}

// chooseModel passes on which model is preferred, where the agent offers it.
func (f *front) chooseModel(ctx context.Context, id acp.SessionId, models *acp.SessionModelState, options []acp.SessionConfigOption) {
	want := f.Session.Model.ID
	if want == "" {
		return
	}
	err := fmt.Errorf("it does not offer that")
	for _, o := range options {
		if s := o.Select; s != nil && value(s.Category) == acp.SessionConfigOptionCategoryModel {
			_, err = f.conn.SetSessionConfigOption(ctx, acp.SetSessionConfigOptionRequest{ValueId: &acp.SetSessionConfigOptionValueId{
				SessionId: id, ConfigId: s.Id, Value: acp.SessionConfigValueId(want),
			}})
		}
	}
	if models != nil && err != nil {
		_, err = f.conn.UnstableSetSessionModel(ctx, acp.UnstableSetSessionModelRequest{SessionId: id, ModelId: acp.UnstableModelId(want)})
	}
	if err != nil {
		f.post(func() { f.screen.say(note, fmt.Sprintf("model %s: %v", want, err)) })
	}
}
