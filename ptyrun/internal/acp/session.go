package acp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// connect initializes the agent and opens a session, after authentication if the agent requires it.
func (a *Agent) connect() {
	hello, err := request[acp.InitializeResponse](a, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "atm", Version: a.Version}, // without capabilities: no files, no terminals
	})
	if err == nil && hello.ProtocolVersion != acp.ProtocolVersionNumber {
		err = fmt.Errorf("it speaks version %d of the protocol, atm speaks version %d", hello.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	var id acp.SessionId
	var how string
	if err == nil {
		id, how, err = a.openSession(hello.AgentCapabilities.LoadSession)
	}
	if e, ok := errors.AsType[*acp.RequestError](err); ok && e.Code == acp.NewAuthRequired(nil).Code {
		if err = a.authenticate(hello.AuthMethods); err == nil {
			id, how, err = a.openSession(hello.AgentCapabilities.LoadSession)
		}
	}
	a.do(func() {
		a.isConnecting = false
		if errors.Is(err, errGone) {
			return
		}
		if err != nil {
			_, why := explain(err)
			a.leave(fmt.Sprintf("cannot start a session with %s: %s", a.Command[0], why))
			return
		}
		a.capabilities, a.session = hello.AgentCapabilities.PromptCapabilities, id
		a.note(fmt.Sprintf("%s, session %s", cmp.Or(value(hello.AgentInfo).Name, a.Command[0]), id))
		e := wire.Event{Kind: wire.SessionStart}.With("source", how)
		e = e.With("run", a.Run)
		for name, value := range a.Session {
			e = e.With(name, value)
		}
		a.log(e)
		a.setActivity(reducer.Idle, "")
	})
}

// openSession loads the session to continue if the agent supports that, else it makes a new one.
func (a *Agent) openSession(canLoad bool) (id acp.SessionId, how string, err error) {
	meta := maps.Clone(a.Session)
	delete(meta, "metadata")
	metadata, _ := a.Session["metadata"].(map[string]any)
	maps.Copy(meta, metadata)
	none := []acp.McpServer{}
	if id = acp.SessionId(a.Load); id != "" && canLoad {
		r, err := request[acp.LoadSessionResponse](a, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{Meta: meta, Cwd: a.Dir, McpServers: none, SessionId: id})
		if err == nil {
			a.chooseModel(id, r.ConfigOptions)
			return id, "resume", nil
		}
	}
	r, err := request[acp.NewSessionResponse](a, acp.AgentMethodSessionNew, acp.NewSessionRequest{Meta: meta, Cwd: a.Dir, McpServers: none})
	if err == nil && r.SessionId == "" {
		err = errors.New("it opened none")
	}
	if err == nil {
		a.chooseModel(r.SessionId, r.ConfigOptions)
	}
	return r.SessionId, "startup", err
}

// chooseModel sets the preferred model, with the agent's option for it or else the older method. An agent that has
// neither keeps its own.
func (a *Agent) chooseModel(id acp.SessionId, options []acp.SessionConfigOption) {
	preferred, _ := a.Session["model_preferences"].(map[string]any)
	want, _ := preferred["model_id"].(string)
	if want == "" {
		return
	}
	for _, o := range options {
		if s := o.Select; s != nil && value(s.Category) == acp.SessionConfigOptionCategoryModel {
			to := acp.SetSessionConfigOptionValueId{SessionId: id, ConfigId: s.Id, Value: acp.SessionConfigValueId(want)}
			request[any](a, acp.AgentMethodSessionSetConfigOption, acp.SetSessionConfigOptionRequest{ValueId: &to})
			return
		}
	}
	request[any](a, acp.AgentMethodSessionSetModel, acp.UnstableSetSessionModelRequest{SessionId: id, ModelId: acp.UnstableModelId(want)})
}

// authenticate signs in. If the agent offers several methods, a person chooses.
func (a *Agent) authenticate(methods []acp.AuthMethod) error {
	q := newQuestion("question", a.Command[0]+" wants you to sign in. How?")
	for _, m := range methods {
		if m.Agent != nil {
			q.addOption(acp.PermissionOption{OptionId: acp.PermissionOptionId(m.Agent.Id), Name: m.Agent.Name})
		}
	}
	chosen := 0
	if len(q.options) != 1 {
		a.do(func() {
			a.isConnecting = false
			a.ask(q)
		})
		chosen = a.await(a.running, q)
	}
	if chosen < 0 {
		return errors.New("it wants you to sign in")
	}
	_, err := request[any](a, acp.AgentMethodAuthenticate, acp.AuthenticateRequest{MethodId: string(q.options[chosen])})
	return err
}
