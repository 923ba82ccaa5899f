package testagent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"
)

// acpAgent is an agent that speaks the Agent Client Protocol and has no model. Lines of the prompt say what it does:
//
//	CONFIRM [command]   ask whether to run it              EDIT [file file]   ask whether to "Tidy the comments" in them
//	RUN command         in a shell of its own              SLOW               wait until cancelled
//	DIE                 exit with 7                        FAIL [text]        return an error
//	SPEND [amount]      the session costs so much, in USD
//
// It answers with the prompt's text in [[ ]], its other parts, and the result of each line. ACP_MEMORY names a file
// that keeps a session; without it, none can be loaded. ACP_AUTH lists the methods of which it requires one to sign in.
type acpAgent struct {
	acp.Agent // panics at a method that is missing here
	conn      *acp.AgentSideConnection

	begun chan bool // by a prompt

	lock       sync.Mutex
	cancel     context.CancelFunc
	authMethod string
	about      string // the session's parameters
	model      string // a command that plays the model
}

func mainACP(args []string) int {
	a := &acpAgent{begun: make(chan bool, 1)}
	f := flag.NewFlagSet("fakeagent acp", flag.ContinueOnError)
	f.StringVar(&a.model, "model", "", "ask this `command` what to answer: what is prompted on its stdin")
	if f.Parse(args) != nil {
		return 2
	}
	in, fromClient := io.Pipe() // the connection reads nothing before a.conn is set
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, in)
	go func() {
		client := bufio.NewReader(os.Stdin)
		line, err := client.ReadBytes('\n')
		for ; err == nil; line, err = client.ReadBytes('\n') {
			fromClient.Write(line)
			if bytes.Contains(line, []byte(`"method":"session/prompt"`)) { // the connection starts requests in any order, and a cancel may be next
				<-a.begun
			}
		}
		fromClient.Write(line)
		fromClient.CloseWithError(err)
	}()
	<-a.conn.Done()
	return 0
}

func (a *acpAgent) Initialize(context.Context, acp.InitializeRequest) (r acp.InitializeResponse, err error) {
	r = acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AgentInfo: &acp.Implementation{Name: "fake", Version: "1"}}
	r.AgentCapabilities.LoadSession = os.Getenv("ACP_MEMORY") != ""
	r.AgentCapabilities.PromptCapabilities = acp.PromptCapabilities{Image: true, EmbeddedContext: true}
	for _, name := range strings.Fields(os.Getenv("ACP_AUTH")) {
		r.AuthMethods = append(r.AuthMethods, acp.AuthMethod{Agent: &acp.AuthMethodAgent{Id: name, Name: "With " + name}})
	}
	return r, nil
}

func (a *acpAgent) Authenticate(_ context.Context, p acp.AuthenticateRequest) (r acp.AuthenticateResponse, err error) {
	a.authMethod = p.MethodId
	return r, nil
}

func (a *acpAgent) NewSession(_ context.Context, p acp.NewSessionRequest) (r acp.NewSessionResponse, err error) {
	if os.Getenv("ACP_AUTH") != "" && a.authMethod == "" {
		return r, acp.NewAuthRequired(nil)
	}
	a.about = fmt.Sprint(p.Meta, " in ", path.Base(p.Cwd))
	r.SessionId = acp.SessionId(fmt.Sprint("sess-", os.Getpid()))
	r.Models = &acp.SessionModelState{CurrentModelId: "small", AvailableModels: []acp.ModelInfo{{ModelId: "small", Name: "small"}, {ModelId: "large", Name: "large"}}}
	return r, nil
}

func (a *acpAgent) UnstableSetSessionModel(_ context.Context, p acp.UnstableSetSessionModelRequest) (r acp.UnstableSetSessionModelResponse, err error) {
	a.about += " model " + string(p.ModelId)
	return r, nil
}

func (a *acpAgent) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (r acp.LoadSessionResponse, err error) {
	memory, err := os.ReadFile(os.Getenv("ACP_MEMORY"))
	if err != nil {
		return r, err
	}
	a.about = "loaded " + string(memory)
	a.say(ctx, p.SessionId, "replayed: "+string(memory))
	return r, nil
}

func (a *acpAgent) say(ctx context.Context, id acp.SessionId, text string) {
	a.update(ctx, id, acp.UpdateAgentMessageText(text))
}

func (a *acpAgent) update(ctx context.Context, id acp.SessionId, u acp.SessionUpdate) {
	a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: u})
}

func (a *acpAgent) Cancel(context.Context, acp.CancelNotification) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.cancel()
	return nil
}

var acpLine = regexp.MustCompile(`(?m)^ *(CONFIRM|EDIT|RUN|SLOW|DIE|MUTE|FAIL|ABOUT|SPEND)\b *\[?([^\]\n]*)`)

func (a *acpAgent) Prompt(ctx context.Context, p acp.PromptRequest) (r acp.PromptResponse, err error) {
	ctx, cancel := context.WithCancel(ctx)
	a.lock.Lock()
	a.cancel = cancel
	a.lock.Unlock()
	a.begun <- true
	prompt, parts := "", ""
	for _, b := range p.Prompt {
		switch {
		case b.Text != nil:
			prompt += b.Text.Text
		case b.Resource != nil:
			text := b.Resource.Resource.TextResourceContents
			parts += " " + path.Base(strings.ReplaceAll(text.Uri, "#", "/")) + " text " + text.Text
		case b.Image != nil:
			parts += " image " + b.Image.MimeType
		case b.ResourceLink != nil:
			parts += " link " + b.ResourceLink.Name
		}
	}
	if name := os.Getenv("ACP_MEMORY"); name != "" {
		os.WriteFile(name, []byte(prompt), 0o600)
	}
	if a.model != "" {
		return a.play(ctx, p.SessionId, prompt)
	}
	a.say(ctx, p.SessionId, "[["+prompt)
	a.say(ctx, p.SessionId, parts+"]]")
	for i, m := range acpLine.FindAllStringSubmatch(prompt, -1) {
		if m[1] == "FAIL" {
			return r, acp.NewInternalError(map[string]any{"details": cmp.Or(m[2], "it was asked to fail")})
		}
		result, err := a.do(ctx, p.SessionId, acp.ToolCallId(fmt.Sprint("call-", i)), m[1], m[2])
		if ctx.Err() != nil {
			return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		}
		if e, ok := errors.AsType[*acp.RequestError](err); ok {
			result = fmt.Sprintf("%v %v", e.Message, e.Data)
		}
		a.say(ctx, p.SessionId, "\n"+m[1]+": "+result)
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// play answers what the command says that plays the model, which may ask for permissions.
func (a *acpAgent) play(ctx context.Context, id acp.SessionId, prompt string) (r acp.PromptResponse, err error) {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", a.model)
	c.Stdin, c.WaitDelay = strings.NewReader(prompt), time.Second
	out, err := c.Output()
	steps := parseSteps(string(out))
	if len(steps) == 0 {
		steps = []step{{word: "SAY", arg: strings.TrimSpace(string(out))}}
	}
	for i, s := range steps {
		if s.word == "CONFIRM" && err == nil {
			var answer string
			if answer, err = a.do(ctx, id, acp.ToolCallId(fmt.Sprint("call-", i)), s.word, s.arg); answer == "no" || answer == "cancelled" {
				break
			}
		} else if err == nil {
			a.say(ctx, id, s.arg)
		}
	}
	switch {
	case ctx.Err() != nil:
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case err != nil:
		return r, acp.NewInternalError(map[string]any{"details": err.Error()})
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func (a *acpAgent) do(ctx context.Context, id acp.SessionId, call acp.ToolCallId, word, about string) (string, error) {
	switch word {
	case "ABOUT":
		return a.about + " by " + a.authMethod, nil
	case "SPEND":
		amount, err := strconv.ParseFloat(about, 64)
		a.update(ctx, id, acp.SessionUpdate{UsageUpdate: &acp.SessionUsageUpdate{Used: 53000, Size: 200000, Cost: &acp.Cost{Amount: amount, Currency: "USD"}}})
		return "done", err
	case "CONFIRM":
		return a.confirm(ctx, id, call, "Bash: "+about, acp.WithStartKind(acp.ToolKindExecute), acp.WithStartRawInput(map[string]any{"command": about}))
	case "EDIT":
		var files []acp.ToolCallLocation
		for _, path := range strings.Fields(about) {
			files = append(files, acp.ToolCallLocation{Path: path})
		}
		return a.confirm(ctx, id, call, "Tidy the comments", acp.WithStartKind(acp.ToolKindEdit), acp.WithStartLocations(files))
	case "RUN":
		output, err := exec.CommandContext(ctx, "sh", "-c", about).Output()
		return string(output), err
	case "DIE":
		os.Exit(7)
	case "MUTE":
		os.Stdout.Close()
	}
	<-ctx.Done() // SLOW, and MUTE
	return "", ctx.Err()
}

func (a *acpAgent) confirm(ctx context.Context, id acp.SessionId, call acp.ToolCallId, title string, about ...acp.ToolCallStartOpt) (string, error) {
	a.update(ctx, id, acp.StartToolCall(call, title, about...))
	r, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: id, ToolCall: acp.ToolCallUpdate{ToolCallId: call},
		Options: []acp.PermissionOption{
			{Kind: acp.PermissionOptionKindAllowAlways, Name: "Always", OptionId: "always"},
			{Kind: acp.PermissionOptionKindAllowOnce, Name: "Just this once", OptionId: "once"},
			{Kind: acp.PermissionOptionKindRejectAlways, Name: "Never", OptionId: "never"},
			{Kind: acp.PermissionOptionKindRejectOnce, Name: "Leave it", OptionId: "no"},
		},
	})
	answer := "cancelled"
	if r.Outcome.Selected != nil {
		answer = string(r.Outcome.Selected.OptionId)
	}
	a.update(ctx, id, acp.UpdateToolCall(call, acp.WithUpdateStatus(acp.ToolCallStatusCompleted), acp.WithUpdateRawOutput(answer)))
	return answer, err
}
