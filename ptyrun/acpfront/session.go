//go:build linux || darwin

package acpfront

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// connect initializes the agent and opens a session, after authentication if the agent requires it.
func (f *front) connect() {
	ctx := f.running
	hello, err := acp.SendRequest[acp.InitializeResponse](f.conn, ctx, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "atm", Version: f.Version},
		ClientCapabilities: acp.ClientCapabilities{
			Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true,
		},
	})
	if err == nil && hello.ProtocolVersion != acp.ProtocolVersionNumber {
		err = fmt.Errorf("it speaks version %d of the protocol, atm speaks version %d", hello.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	var id acp.SessionId
	var how string
	if err == nil {
		id, how, err = f.openSession(ctx, hello.AgentCapabilities.LoadSession)
	}
	if e, ok := errors.AsType[*acp.RequestError](err); ok && e.Code == acp.NewAuthRequired(nil).Code {
		if err = f.authenticate(ctx, hello.AuthMethods); err == nil {
			id, how, err = f.openSession(ctx, hello.AgentCapabilities.LoadSession)
		}
	}
	if err != nil {
		time.Sleep(endGrace) // if the agent has ended, that is the reason to name
	}
	f.awaitSpawned()
	f.do(func() {
		if err != nil {
			_, why := explain(err)
			f.exit(1, fmt.Sprintf("cannot start a session with %s: %s", f.Command[0], why))
			return
		}
		f.capabilities, f.session = hello.AgentCapabilities.PromptCapabilities, id
		f.screen.print(note, fmt.Sprintf("%s, session %s", cmp.Or(value(hello.AgentInfo).Name, f.Command[0]), id))
		e, _ := wire.Compose("session_start", [][2]string{{"source", how}}) // which cannot fail
		e = e.With("run", f.Run)
		for name, value := range f.Session {
			e = e.With(name, value)
		}
		f.log(e)
		f.setActivity(reducer.Idle, "")
		f.awaitLogged()
	})
}

// awaitSpawned waits until the runner has logged the start of this process: earlier events would count as those of the
// process before.
func (f *front) awaitSpawned() {
	isSpawned := func(e *wire.Event) bool { return e.Kind == "spawned" }
	f.awaitEvent(isSpawned, func(e *wire.Event) bool {
		return isSpawned(e) && string(e.Body().Raw("pid")) == strconv.Itoa(os.Getpid())
	})
}

// awaitEvent waits a few seconds until the log has an event that matches want and that comes after, or is, the last one
// that matches since.
func (f *front) awaitEvent(since, want func(e *wire.Event) bool) {
	found := false
	for end := time.Now().Add(3 * time.Second); !found && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		f.Box.Log().Tail(func(e *wire.Event) bool {
			found = want(e)
			return found || since(e)
		})
	}
}

// openSession loads the session of an earlier start in this run if the agent supports that, else it makes a new one.
func (f *front) openSession(ctx context.Context, canLoad bool) (id acp.SessionId, how string, err error) {
	meta := maps.Clone(f.Session)
	delete(meta, "metadata")
	metadata, _ := f.Session["metadata"].(map[string]any)
	maps.Copy(meta, metadata)
	none := []acp.McpServer{}
	if last := f.lastSession(); last != "" && canLoad {
		r, err := acp.SendRequest[acp.LoadSessionResponse](f.conn, ctx, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{Meta: meta, Cwd: f.Dir, McpServers: none, SessionId: last})
		if err == nil {
			f.chooseModel(ctx, last, r.ConfigOptions)
			return last, "resume", nil
		}
	}
	r, err := acp.SendRequest[acp.NewSessionResponse](f.conn, ctx, acp.AgentMethodSessionNew, acp.NewSessionRequest{Meta: meta, Cwd: f.Dir, McpServers: none})
	if err == nil && r.SessionId == "" {
		err = errors.New("it opened none")
	}
	if err == nil {
		f.chooseModel(ctx, r.SessionId, r.ConfigOptions)
	}
	return r.SessionId, "startup", err
}

// lastSession returns the session of an earlier start in this run, or "".
func (f *front) lastSession() acp.SessionId {
	isStart := func(e *wire.Event) bool { return e.Kind == "session_start" }
	events, _ := f.Box.Log().Tail(isStart)
	if len(events) == 0 || !isStart(&events[0]) || events[0].Field("run") != f.Run {
		return ""
	}
	return acp.SessionId(events[0].Session)
}

// chooseModel sets the preferred model, with the agent's option for it or else the older method. An agent that has
// neither keeps its own.
func (f *front) chooseModel(ctx context.Context, id acp.SessionId, options []acp.SessionConfigOption) {
	preferred, _ := f.Session["model_preferences"].(map[string]any)
	want, _ := preferred["model_id"].(string)
	if want == "" {
		return
	}
	for _, o := range options {
		if s := o.Select; s != nil && value(s.Category) == acp.SessionConfigOptionCategoryModel {
			to := acp.SetSessionConfigOptionValueId{SessionId: id, ConfigId: s.Id, Value: acp.SessionConfigValueId(want)}
			f.conn.SendRequestNoResult(ctx, acp.AgentMethodSessionSetConfigOption, acp.SetSessionConfigOptionRequest{ValueId: &to})
			return
		}
	}
	to := acp.UnstableSetSessionModelRequest{SessionId: id, ModelId: acp.UnstableModelId(want)}
	f.conn.SendRequestNoResult(ctx, acp.AgentMethodSessionSetModel, to)
}

// authenticate signs in. If the agent offers several methods, a person chooses.
func (f *front) authenticate(ctx context.Context, methods []acp.AuthMethod) error {
	r := &request{kind: "question", prompt: f.Command[0] + " wants you to sign in. How?"}
	for _, m := range methods {
		if m.Agent != nil {
			r.options = append(r.options, acp.PermissionOption{OptionId: acp.PermissionOptionId(m.Agent.Id), Name: m.Agent.Name, Kind: ""})
		}
	}
	chosen := 0
	if len(r.options) != 1 {
		chosen = f.ask(ctx, r)
	}
	if chosen < 0 {
		return errors.New("it wants you to sign in")
	}
	to := acp.AuthenticateRequest{MethodId: string(r.options[chosen].OptionId)}
	return f.conn.SendRequestNoResult(ctx, acp.AgentMethodAuthenticate, to)
}

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
