package hook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/testteam"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	testteam.ClearEnviron()
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A member is of a team in a temporary directory.
type member struct {
	*maildir.Box
	team *teamdir.Team
}

// team makes a team, and returns bob.
func team(t testing.TB) (bob *member) {
	t.Helper()
	made := teamtest.NewTeam(t, teamtest.NewRoot(t, notices.Tell), "alice", "bob")
	made.Store.LockTimeout = time.Minute
	return &member{made.Box("bob"), made}
}

// running is a program that runs, as a hook notes it.
func running(t *testing.T, pid int) programs.Program {
	t.Helper()
	p, isFound := process.Find(pid)
	if !isFound {
		t.Fatal(pid)
	}
	return programs.Program{Tool: "claude", PID: p.PID, Start: p.Start}
}

// primer is what bob is told when a session begins.
func primer(t testing.TB, bob *member) string {
	t.Helper()
	text, err := called(bob, Claude, nil, nil).scope.Primer(nil, true)
	must(t, err)
	return text
}

// called makes a call of the hook of a program that is not to be found, and whose questions only its person answers.
func called(bob *member, tool string, stdout, stderr io.Writer) *call {
	s := app.Of(bob.team)
	s.Me, s.Given.Out, s.Given.Err = bob.Box, stdout, stderr
	c := newCall(s, all.OfHook(tool), Options{Word: tool}, false)
	c.program = func() programs.Program { return programs.Program{} }
	c.Arguments = func() []string { return nil }
	c.MayAsk = false
	return c
}

// underRunner makes the agent run under a runner until the test ends.
func underRunner(t testing.TB, b *member) {
	t.Helper()
	hold, err := claim.HoldRunner(ctx, b.Store(), b.Agent())
	must(t, err)
	t.Cleanup(func() { hold.Release() })
}

// events returns all events of a log.
func events(t testing.TB, b *member) (all []wire.Event) {
	t.Helper()
	c := b.Log().Follow(0)
	defer c.Close()
	for {
		e, err := c.Next()
		if err != nil {
			return all
		}
		all = append(all, e)
	}
}

// turn is what is known of a session's turn.
type turn struct {
	ID                      string
	Open, Blocked, Retrying bool
	IsGenerated             bool
	Tool                    string // whose permission it waits for
	Subagent                string // which asks
	Ended                   []string
}

// in makes a call's State in which each of the sessions has the turn.
func (t turn) in(sessions ...string) func() (*reducer.State, error) {
	folded := reducer.Session{Activity: reducer.Unknown, Turn: reducer.Turn{ID: t.ID, Status: reducer.TurnIdle, IsGenerated: t.IsGenerated}, EndedTurns: t.Ended}
	if t.Open {
		folded.Turn.Status = reducer.TurnBusy
	}
	if t.Blocked {
		folded.Activity, folded.Requests = reducer.Confirming, []reducer.Waiting{{Tool: t.Tool, Subagent: t.Subagent}}
	}
	if t.Retrying {
		folded.Detail = "API retry 1"
	}
	s := &reducer.State{}
	for i, session := range sessions {
		if folded.ID = session; i == len(sessions)-1 {
			s.Shown = folded
		} else {
			s.Others = append(s.Others, folded)
		}
	}
	return func() (*reducer.State, error) { return s, nil }
}

func state(t testing.TB, b *member) *reducer.State {
	s := &reducer.State{}
	for _, e := range events(t, b) {
		s.Apply(&e)
	}
	return s
}

// told renders an event in a line: kind, turn, and its own fields.
func told(e wire.Event) string {
	s := e.Kind
	if e.TurnID != "" {
		s += " " + e.TurnID
	}
	own, _ := wire.ReadObject(e.Extra)
	for _, f := range own {
		if f.Name != "transport" && string(f.Value) != `"unknown"` {
			s += fmt.Sprintf(" %s=%s", f.Name, strings.Trim(string(f.Value), `"`))
		}
	}
	if e.Wire != nil {
		s += " " + string(e.Wire)
	}
	return s
}

func toldAll(all []wire.Event) (out []string) {
	for _, e := range all {
		out = append(out, told(e))
	}
	return out
}

func same(t *testing.T, about string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", about, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// One call: its events, then its end events; how mail goes out; whether it shows that earlier mail was received.
func TestUnderstand(t *testing.T) {
	t.Parallel()
	const (
		claude  = `{"session_id":"s1","transcript_path":"/t.jsonl","cwd":"/repo","permission_mode":"default","prompt_id":"p2",`
		codex   = `{"session_id":"th1","transcript_path":null,"cwd":"/repo","model":"m","permission_mode":"default","turn_id":"p2",`
		gemini  = `{"session_id":"g1","transcript_path":"/t.json","cwd":"/repo","timestamp":"2026-11-20T11:53:02.881Z",`
		sub     = `"agent_id":"a17","agent_type":"Explore",`
		bash    = `"tool_name":"Bash","tool_input":{"command":"go test ./...","description":"Run the tests"}`
		shows   = "shows"
		context = "context"
		cont    = "continues"
	)
	open := turn{ID: "p2", Open: true}
	older := turn{ID: "p1", Open: true}
	for about, c := range map[string]struct {
		tool  string
		in    string
		turn  turn
		want  []string
		flags string
	}{
		// Claude Code
		"prompt again":      {Claude, claude + `"hook_event_name":"UserPromptSubmit","prompt":"fix it"}`, open, []string{"turn_started p2 prompt=fix it"}, "shows context"},
		"prompt after esc":  {Claude, claude + `"hook_event_name":"UserPromptSubmit","prompt":"no"}`, older, []string{"turn_completed p1 status=interrupted", "turn_started p2 prompt=no"}, "shows context"},
		"prompt, older":     {Claude, claude + `"hook_event_name":"UserPromptSubmit","prompt":"no"}`, turn{ID: "p3", Open: true, Ended: []string{"p2"}}, []string{"turn_started p2 prompt=no"}, "shows context"},
		"no prompt id":      {Claude, `{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":"no"}`, older, []string{"turn_completed p1 status=interrupted", "turn_started prompt=no"}, "shows context"},
		"stop":              {Claude, claude + `"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done","background_tasks":[]}`, open, []string{"| turn_completed p2 status=completed response=done", "| turn_idle p2"}, "shows continues"},
		"stop, continued":   {Claude, claude + `"hook_event_name":"Stop","stop_hook_active":true}`, open, []string{"| turn_completed p2 status=completed", "| turn_idle p2"}, "shows"},
		"stop, background":  {Claude, claude + `"hook_event_name":"Stop","stop_hook_active":false,"background_tasks":[{"id":"b1","type":"shell","status":"running"}]}`, open, []string{"| turn_completed p2 status=completed background=1"}, "shows continues"},
		"start, resumed":    {Claude, claude + `"hook_event_name":"SessionStart","source":"resume"}`, older, []string{"turn_completed p1 status=interrupted", `session_start {"kind":"session_start","source":"resume"}`}, "begins context"},
		"start, compacted":  {Claude, claude + `"hook_event_name":"SessionStart","source":"compact"}`, open, []string{`session_start p2 {"kind":"session_start","source":"compact"}`}, "context"},
		"limit":             {Claude, claude + `"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"You've hit your limit · limit reached|1795701600"}`, open, []string{"stream_error p2 error_summary=rate_limit: You've hit your limit · limit reached|1795701600", "turn_completed p2 status=failed", "turn_idle p2", "state_change new=limited detail=You've hit your limit · limit reached|1795701600 until=2026-11-26T14:00:00Z"}, ""},
		"limit of requests": {Claude, claude + `"hook_event_name":"StopFailure","error":"rate_limit","error_details":"429 try again later"}`, open, []string{"stream_error p2 error_summary=rate_limit: 429 try again later", "turn_completed p2 status=failed", "turn_idle p2"}, ""},
		"end":               {Claude, claude + `"hook_event_name":"SessionEnd","reason":"prompt_input_exit"}`, open, []string{"turn_completed p2 status=interrupted", "session_end p2 reason=prompt_input_exit"}, "ends"},
		"tool done":         {Claude, claude + `"hook_event_name":"PostToolUse",` + bash + `,"tool_use_id":"tu1","tool_response":{"stdout":"ok"},"duration_ms":3}`, open, []string{"tool_call_end p2 tool=Bash tool_call_id=tu1"}, "shows"},
		"tool failed":       {Claude, claude + `"hook_event_name":"PostToolUseFailure",` + bash + `,"tool_use_id":"tu1","error":"exit 1"}`, open, []string{"tool_call_end p2 tool=Bash tool_call_id=tu1 error=exit 1"}, "shows"},
		"tool interrupted":  {Claude, claude + `"hook_event_name":"PostToolUseFailure",` + bash + `,"tool_use_id":"tu1","error":"x","is_interrupt":true}`, open, []string{"tool_call_end p2 tool=Bash tool_call_id=tu1 error=x", "turn_completed p2 status=interrupted"}, "shows"},
		"tools done":        {Claude, claude + `"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_use_id":"tu1"}]}`, open, nil, "shows context"},
		"denied":            {Claude, claude + `"hook_event_name":"PermissionDenied",` + bash + `,"tool_use_id":"tu1","reason":"no"}`, open, []string{"tool_call_end p2 tool=Bash tool_call_id=tu1 error=no"}, "shows"},
		"permission note":   {Claude, claude + `"hook_event_name":"Notification","notification_type":"permission_prompt","message":"Claude needs your permission to use Bash"}`, open, []string{"confirm_required p2 prompt=Claude needs your permission to use Bash"}, ""},
		"idle note":         {Claude, claude + `"hook_event_name":"Notification","notification_type":"idle_prompt","message":"Claude is waiting"}`, turn{ID: "p2"}, []string{"turn_idle p2"}, ""},
		"idle note, open":   {Claude, claude + `"hook_event_name":"Notification","notification_type":"idle_prompt","message":"m"}`, open, []string{"turn_completed p2 status=interrupted", "turn_idle p2"}, ""},
		"idle note, older":  {Claude, claude + `"hook_event_name":"Notification","notification_type":"idle_prompt","message":"m"}`, turn{ID: "p3", Open: true}, nil, ""},
		"asks in a form":    {Claude, claude + `"hook_event_name":"Notification","notification_type":"elicitation_dialog","message":"which?"}`, open, []string{"waiting_for_input p2 prompt=which?"}, ""},
		"form is back":      {Claude, claude + `"hook_event_name":"Notification","notification_type":"elicitation_complete","message":"ok"}`, open, []string{"state_change p2 new=thinking"}, ""},
		"other note":        {Claude, claude + `"hook_event_name":"Notification","notification_type":"auth_success","message":"in"}`, open, nil, ""},
		"elicitation":       {Claude, claude + `"hook_event_name":"Elicitation","mcp_server_name":"x","message":"name?","mode":"form"}`, open, []string{"waiting_for_input p2 prompt=name?"}, "shows"},
		"elicited":          {Claude, claude + `"hook_event_name":"ElicitationResult","mcp_server_name":"x","action":"accept"}`, open, []string{"state_change p2 new=thinking"}, "shows"},
		"compacts":          {Claude, claude + `"hook_event_name":"PreCompact","trigger":"auto","custom_instructions":null}`, open, []string{"state_change p2 new=thinking detail=compacting"}, ""},
		"compacts, asked":   {Claude, claude + `"hook_event_name":"PreCompact","trigger":"manual","custom_instructions":""}`, older, []string{"turn_completed p1 status=interrupted", "state_change p2 new=thinking detail=compacting"}, ""},
		"compacted":         {Claude, claude + `"hook_event_name":"PostCompact","trigger":"auto","compact_summary":"s"}`, open, []string{"state_change p2 new=thinking"}, ""},
		"compacted, asked":  {Claude, claude + `"hook_event_name":"PostCompact","trigger":"manual","compact_summary":"s"}`, open, []string{"state_change p2 new=idle"}, ""},
		"me, idle":          {Claude, claude + `"hook_event_name":"TeammateIdle","teammate_name":"bob","team_name":"x"}`, open, []string{"| turn_idle p2"}, "shows continues"},
		"another, idle":     {Claude, claude + `"hook_event_name":"TeammateIdle","teammate_name":"alice","team_name":"x"}`, open, nil, ""},
		"sub-agent, tool":   {Claude, claude + sub + `"hook_event_name":"PreToolUse",` + bash + `,"tool_use_id":"tu1"}`, open, nil, ""},
		"sub-agent, stop":   {Claude, claude + sub + `"hook_event_name":"Stop","stop_hook_active":false}`, open, nil, ""},
		"sub-agent stops":   {Claude, claude + sub + `"hook_event_name":"SubagentStop","stop_hook_active":false,"agent_transcript_path":"/x"}`, open, nil, ""},
		"sub-agent asks":    {Claude, claude + sub + `"hook_event_name":"PermissionRequest",` + bash + `}`, open, []string{"confirm_required tool=Bash prompt=go test ./... detail=subagent Explore subagent=a17"}, ""},
		"sub-agent waits":   {Claude, claude + sub + `"hook_event_name":"Notification","notification_type":"permission_prompt","message":"m"}`, open, []string{"confirm_required prompt=m detail=subagent Explore subagent=a17"}, ""},
		"sub-agent goes on": {Claude, claude + sub + `"hook_event_name":"PostToolUse",` + bash + `,"tool_use_id":"tu1"}`, turn{ID: "p2", Open: true, Blocked: true, Tool: "Bash", Subagent: "a17"}, []string{"state_change previous=confirming new=tool_running detail=subagent Explore"}, ""},
		"its agent asks":    {Claude, claude + sub + `"hook_event_name":"PostToolUse",` + bash + `,"tool_use_id":"tu1"}`, turn{ID: "p2", Open: true, Blocked: true, Tool: "Bash"}, nil, ""},
		"asks, and stops":   {Claude, claude + sub + `"hook_event_name":"SubagentStop","stop_hook_active":false}`, turn{ID: "p2", Open: true, Blocked: true, Tool: "Bash", Subagent: "a17"}, []string{"state_change previous=confirming new=tool_running detail=subagent Explore"}, ""},
		"it asks later":     {Claude, claude + sub + `"hook_event_name":"PermissionRequest",` + bash + `}`, turn{ID: "p2", Ended: []string{"p2"}}, []string{"confirm_required tool=Bash prompt=go test ./... detail=subagent Explore subagent=a17"}, ""},
		"and goes on":       {Claude, claude + sub + `"hook_event_name":"PostToolUse",` + bash + `,"tool_use_id":"tu1"}`, turn{ID: "p2", Ended: []string{"p2"}, Blocked: true, Tool: "Bash", Subagent: "a17"}, []string{"state_change previous=confirming new=idle"}, ""},
		"another tool's":    {Claude, claude + sub + `"hook_event_name":"PostToolUse","tool_name":"Read","tool_use_id":"tu1"}`, turn{ID: "p2", Open: true, Blocked: true, Tool: "Bash", Subagent: "a17"}, nil, ""},
		"odd sub-agent":     {Claude, claude + `"agent_id":7,"hook_event_name":"Stop","stop_hook_active":false}`, open, nil, ""},
		"empty agent id":    {Claude, claude + `"agent_id":"","hook_event_name":"PreToolUse","tool_name":"Read","tool_use_id":"x"}`, open, []string{"tool_call_start p2 tool=Read tool_call_id=x"}, "shows"},

		// Claude Code's status line
		"status line":        {ClaudeStatus, `{"session_id":"s1","transcript_path":"/t.jsonl","cost":{"total_cost_usd":0.0123,"total_duration_ms":45000},"context_window":{"total_input_tokens":15234,"total_output_tokens":4521,"context_window_size":200000,"used_percentage":8,"current_usage":{"input_tokens":8500,"output_tokens":1200,"cache_creation_input_tokens":5000,"cache_read_input_tokens":2000}}}`, open, []string{"usage context_size=200000 context_used=15500 cost=0.0123 currency=USD"}, ""},
		"status line, begin": {ClaudeStatus, `{"session_id":"s1","cost":{"total_cost_usd":0},"context_window":{"context_window_size":200000,"current_usage":null}}`, open, []string{"usage context_size=200000 cost=0 currency=USD"}, ""},
		"status line, old":   {ClaudeStatus, `{"session_id":"s1","hook_event_name":"Status","cost":{"total_cost_usd":0.5}}`, open, []string{"usage cost=0.5 currency=USD"}, ""},
		"status line, odd":   {ClaudeStatus, `{"session_id":7,"cost":[],"context_window":{"current_usage":5,"context_window_size":null}}`, open, nil, ""},

		// Codex
		"codex stop, 2nd": {Codex, codex + `"hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":"x"}`, open, []string{"| turn_completed p2 thread_id=th1 status=completed response=x", "| turn_idle p2 thread_id=th1"}, "shows"},
		"codex asks":      {Codex, codex + `"hook_event_name":"PermissionRequest","tool_name":"shell","tool_input":{"command":["go","test"]}}`, open, []string{"confirm_required p2 thread_id=th1 tool=shell prompt=go test"}, "shows"},
		"codex compacts":  {Codex, codex + `"hook_event_name":"PreCompact","trigger":"auto"}`, open, []string{"state_change p2 thread_id=th1 new=thinking detail=compacting"}, ""},
		"codex compacted": {Codex, codex + `"hook_event_name":"PostCompact","trigger":"manual"}`, open, []string{"state_change p2 thread_id=th1 new=idle"}, ""},
		"codex sub-agent": {Codex, codex + sub + `"hook_event_name":"SubagentStop","stop_hook_active":false}`, open, nil, ""},

		// Gemini CLI
		"gemini next":      {Gemini, gemini + `"hook_event_name":"BeforeAgent","prompt":"fix it"}`, turn{ID: "g1#7", Open: true}, []string{"turn_completed g1#7 status=interrupted", "turn_started g1#8 prompt=fix it"}, "shows context"},
		"gemini, our mail": {Gemini, gemini + `"hook_event_name":"BeforeAgent","prompt":"[atm] 1 new message for bob; answer"}`, turn{ID: "g1#7", Open: true}, nil, ""},
		"gemini done, 2nd": {Gemini, gemini + `"hook_event_name":"AfterAgent","prompt":"x","prompt_response":"done","stop_hook_active":true}`, turn{ID: "g1#7.a", Open: true}, []string{"| turn_completed g1#7.a status=completed response=done", "| turn_idle g1#7.a"}, "shows"},
		"gemini tool done": {Gemini, gemini + `"hook_event_name":"AfterTool","tool_name":"run_shell_command","tool_input":{},"tool_response":{"llmContent":"x","error":{"message":"no"}}}`, turn{ID: "g1#7.a", Open: true}, []string{"tool_call_end g1#7.a tool=run_shell_command error=no"}, "shows context"},
		"gemini compress":  {Gemini, gemini + `"hook_event_name":"PreCompress","trigger":"auto"}`, open, nil, ""},

		// OpenCode
		"opencode still busy": {OpenCode, `{"type":"session.status","properties":{"sessionID":"o1","status":{"type":"busy"}}}`, turn{ID: "o1#3", Open: true}, nil, ""},
		"opencode busy":       {OpenCode, `{"type":"session.status","prompt":"fix it","answer":"","properties":{"sessionID":"o1","status":{"type":"busy"}}}`, turn{ID: "o1#3"}, []string{"turn_started o1#4 prompt=fix it"}, ""},
		"opencode cut off":    {OpenCode, `{"type":"session.status","prompt":"fix it","answer":"","properties":{"sessionID":"o1","status":{"type":"idle"}}}`, turn{ID: "o1#3", Open: true}, []string{"turn_completed o1#3 status=interrupted", "turn_idle o1#3"}, ""},
		"opencode done":       {OpenCode, `{"type":"session.status","prompt":"fix it","answer":"done","properties":{"sessionID":"o1","status":{"type":"idle"}}}`, turn{ID: "o1#3", Open: true}, []string{"turn_completed o1#3 status=completed response=done", "turn_idle o1#3"}, ""},
		"opencode idle too":   {OpenCode, `{"type":"session.status","properties":{"sessionID":"o1","status":{"type":"idle"}}}`, turn{ID: "o1#3"}, []string{"turn_idle o1#3"}, ""},
		"opencode gives up":   {OpenCode, `{"type":"session.idle","properties":{"sessionID":"o1"}}`, turn{ID: "o1#3", Open: true, Retrying: true}, []string{"turn_completed o1#3 status=failed", "turn_idle o1#3"}, ""},
		"opencode error":      {OpenCode, `{"type":"session.error","properties":{"sessionID":"o1","error":{"name":"APIError","data":{"message":"529"}}}}`, turn{ID: "o1#3", Open: true}, []string{"stream_error error_summary=APIError: 529", "turn_completed o1#3 status=failed"}, ""},
		"opencode asks":       {OpenCode, `{"type":"permission.asked","properties":{"id":"per_1","sessionID":"o1","permission":"bash","patterns":["touch x"],"metadata":{"command":"touch x"},"always":["touch *"]}}`, turn{ID: "o1#3", Open: true}, []string{"confirm_required o1#3 tool=bash prompt=touch x id=per_1"}, ""},
		"opencode asks, call": {OpenCode, `{"type":"permission.asked","properties":{"id":"per_1","sessionID":"o1","permission":"bash","patterns":["ls"],"metadata":{},"tool":{"messageID":"m1","callID":"c1"}}}`, turn{ID: "o1#3", Open: true}, []string{"confirm_required o1#3 tool=bash prompt=ls id=per_1 tool_call_id=c1"}, ""},
		"opencode may not":    {OpenCode, `{"type":"permission.replied","properties":{"sessionID":"o1","requestID":"per_1","reply":"reject"}}`, turn{ID: "o1#3", Open: true, Blocked: true}, []string{"state_change o1#3 previous=confirming new=thinking id=per_1"}, ""},
		"opencode question":   {OpenCode, `{"type":"question.asked","properties":{"id":"q1","sessionID":"o1","questions":[{"question":"Which?"},{"question":"When?"}]}}`, turn{ID: "o1#3", Open: true}, []string{`confirm_required o1#3 tool=question prompt=Which?\nWhen? id=q1`}, ""},
		"opencode answered":   {OpenCode, `{"type":"question.replied","properties":{"sessionID":"o1","requestID":"q1"}}`, turn{ID: "o1#3", Open: true}, []string{"state_change o1#3 new=thinking id=q1"}, ""},
		"opencode tool done":  {OpenCode, `{"type":"message.part.updated","properties":{"part":{"sessionID":"o1","type":"tool","tool":"bash","callID":"c1","state":{"status":"error","error":"no"}}}}`, turn{ID: "o1#3", Open: true}, []string{"tool_call_end o1#3 tool=bash tool_call_id=c1 error=no"}, ""},
		"opencode text":       {OpenCode, `{"type":"message.part.updated","properties":{"sessionID":"o1","part":{"type":"text","text":"hello"}}}`, turn{ID: "o1#3", Open: true}, nil, ""},
		"opencode end":        {OpenCode, `{"type":"session.deleted","properties":{"sessionID":"o1","info":{"id":"o1"}}}`, turn{ID: "o1#3", Open: true}, []string{"turn_completed o1#3 status=interrupted", "session_end reason=deleted"}, "ends"},
		"opencode resumed":    {OpenCode, `{"type":"atm.resumed","properties":{"sessionID":"o1"}}`, turn{ID: "o1#3", Open: true, Blocked: true}, []string{"turn_completed o1#3 status=interrupted"}, ""},
		"opencode other":      {OpenCode, `{"type":"todo.updated","properties":{"sessionID":"o1","todos":[]}}`, turn{}, nil, ""},
	} {
		t.Run(about, func(t *testing.T) {
			bob := team(t)
			got := called(bob, c.tool, nil, nil)
			got.State = c.turn.in("s1", "th1", "g1", "o1")
			err := got.parse([]byte(c.in))
			must(t, err)
			lines := toldAll(got.Events)
			for _, e := range got.EndEvents {
				lines = append(lines, "| "+told(e))
			}
			same(t, about, lines, c.want...)
			var flags []string
			for _, f := range []struct {
				on   bool
				word string
			}{{got.ProvesReceipt, shows}, {got.IsNewProgram, "begins"}, {got.EndsSession, "ends"}, {got.ReplyAs == agents.AsContext, context}, {(got.ReplyAs == agents.AsBlock || got.ReplyAs == agents.OnStderr), cont}} {
				if f.on {
					flags = append(flags, f.word)
				}
			}
			if s := strings.Join(flags, " "); s != c.flags {
				t.Errorf("%s, not %s", s, c.flags)
			}
			transport := "hook"
			if c.tool == OpenCode {
				transport = "notify" // no mail goes out with their answers
			}
			for _, e := range append(got.Events, got.EndEvents...) {
				if e.Source != "hook" || e.Field("transport") != transport {
					t.Errorf("%s: source %q, transport %q", e.Kind, e.Source, e.Field("transport"))
				}
			}
		})
	}
}

// Recordings of the real programs give these events.
func TestRealSessions(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string][]string{
		Claude: {
			`session_start {"kind":"session_start","source":"startup"}`,
			"turn_started p1 prompt=ECHO hello", "turn_completed p1 status=completed response=[[ECHO hello]]", "turn_idle p1",
			"turn_started p2 prompt=DOTOOL now", "tool_call_start p2 tool=Bash tool_call_id=T", "confirm_required p2 tool=Bash prompt=touch made.txt",
			"tool_call_end p2 tool=Bash tool_call_id=T", "turn_completed p2 status=completed response=All done.", "turn_idle p2",
			"turn_started p3 prompt=DOSLOW esc", "turn_completed p3 status=interrupted",
			"turn_started p4 prompt=DOERROR x", "stream_error p4 error_summary=server_error: API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment. If it persists, check your inference gateway (127.0.0.1:18765).",
			"turn_completed p4 status=failed", "turn_idle p4",
			"turn_started p5 prompt=DOSLEEP y", "tool_call_start p5 tool=Bash tool_call_id=T", "turn_completed p5 status=interrupted",
			"state_change p6 previous=tool_running new=thinking detail=compacting", `session_start p6 {"kind":"session_start","source":"compact"}`, "state_change p6 previous=thinking new=idle",
			"session_end p7 reason=clear", `session_start {"kind":"session_start","source":"clear"}`, "session_end p7 reason=prompt_input_exit",
		},
		Codex: {
			`session_start thread_id=th1 {"kind":"session_start","source":"startup"}`,
			"turn_started tu1 thread_id=th1 prompt=ECHO hello", "turn_completed tu1 thread_id=th1 status=completed response=[[ECHO hello]]", "turn_idle tu1 thread_id=th1",
			"turn_started tu2 thread_id=th1 prompt=DOTOOL now", "tool_call_start tu2 thread_id=th1 tool=Bash tool_call_id=T",
			"confirm_required tu2 thread_id=th1 tool=Bash prompt=touch made.txt", "tool_call_end tu2 thread_id=th1 tool=Bash tool_call_id=T",
			"turn_completed tu2 thread_id=th1 status=completed response=All done.", "turn_idle tu2 thread_id=th1",
			"turn_started tu3 thread_id=th1 prompt=DOSLOW esc", "turn_completed tu3 thread_id=th1 status=interrupted", "turn_idle tu3 thread_id=th1",
			"session_end thread_id=th1 reason=other",
		},
		Gemini: {
			`session_start {"kind":"session_start","source":"startup"}`,
			"turn_started #1 prompt=ECHO hello", "turn_completed #1 status=completed response=[[ECHO hello]] hello]]", "turn_idle #1",
			"turn_started #2 prompt=DOTOOL now", "tool_call_start #2 tool=run_shell_command", "confirm_required #2 prompt=touch made.txt",
			"tool_call_end #2 tool=run_shell_command", "turn_completed #2 status=completed response=All done. done.", "turn_idle #2",
			"turn_started #3 prompt=DOSLOW esc", "turn_completed #3 status=interrupted", "turn_idle #3", "session_end reason=exit", "session_end reason=exit", "session_end reason=exit", // it tells it three times
		},
		OpenCode: {
			`session_start {"kind":"session_start","source":"created"}`,
			"turn_started #1", "turn_completed #1 status=completed", "turn_idle #1",
			"turn_started #2", "tool_call_start #2 tool=bash tool_call_id=T", "confirm_required #2 tool=bash prompt=touch made.txt id=per_1f8d0a452001zE1puu2sQpVoKc tool_call_id=T",
			"state_change #2 previous=confirming new=tool_running id=per_1f8d0a452001zE1puu2sQpVoKc", "tool_call_end #2 tool=bash tool_call_id=T", "turn_completed #2 status=completed", "turn_idle #2",
			"turn_started #3", "turn_completed #3 status=interrupted", "turn_idle #3",
			"turn_started #4", "stream_error #4 error_summary=the fake model was asked to fail", "state_change #4 previous=thinking new=thinking detail=API retry 1",
			"state_change #4 previous=thinking new=thinking", "stream_error #4 error_summary=the fake model was asked to fail", "state_change #4 previous=thinking new=thinking detail=API retry 2",
			"turn_completed #4 status=failed", "turn_idle #4",
		},
	} {
		t.Run(tool, inBubble(func(t *testing.T) {
			bob := team(t)
			f, err := os.Open(filepath.Join("testdata", tool+".ndjson"))
			must(t, err)
			defer f.Close()
			for lines := bufio.NewScanner(f); lines.Scan(); {
				out, _ := call1(t, tool, bob, lines.Text(), time.Now())
				quiet := map[string]string{Codex: "{}\n"}[tool]
				if text, _ := answerOf(t, out); text != primer(t, bob) && out != quiet {
					t.Errorf("%.80s answered %q", lines.Text(), out)
				}
				time.Sleep(3 * time.Second)
			}
			got := toldAll(events(t, bob))
			for i, s := range got {
				if head, id, ok := strings.Cut(s, "tool_call_id="); ok && id != "" {
					got[i] = head + "tool_call_id=T"
				}
				if before, after, ok := strings.Cut(got[i], "#"); ok && before[:5] != "strea" {
					kind, _, _ := strings.Cut(before, " ")
					after, rest, _ := strings.Cut(after, " ")
					number, _, _ := strings.Cut(after, ".")
					got[i] = strings.TrimSpace(kind + " #" + number + " " + rest)
				} else if kind, rest, _ := strings.Cut(got[i], " ses_1#"); rest != "" {
					number, rest, _ := strings.Cut(rest, " ")
					got[i] = strings.TrimSpace(kind + " #" + number + " " + rest)
				}
			}
			same(t, tool, got, want...)
			if state(t, bob).Session().Turn.IsOpen() {
				t.Error("a turn is open in the end")
			}
		}))
	}
}

// inBubble makes a test whose clock only its sleeps move.
func inBubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// call1 makes one call, and returns stdout and stderr.
func call1(t testing.TB, tool string, bob *member, in string, now time.Time) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	c := called(bob, tool, &out, &errs)
	c.Now = now
	exit, err := c.handle(ctx, []byte(in))
	if exit != 0 || err != nil {
		t.Fatalf("%.80s: exit %d, %v", in, exit, err)
	}
	return out.String(), errs.String()
}

// If another hook keeps the program from stopping, the turn goes on under its id, and each of its ends counts once.
func TestStopIsBlockedByAnother(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{Claude, Codex} {
		t.Run(tool, func(t *testing.T) {
			bob := team(t)
			now := time.Now()
			does := func(want reducer.Word, event, fields string) {
				t.Helper()
				call1(t, tool, bob, calledWith(tool, event, fields), now)
				if got := state(t, bob).Session().Word(); got != want {
					t.Errorf("%s %s: %s, not %s", event, fields, got, want)
				}
			}
			does(reducer.WordBusy, "UserPromptSubmit", `,"prompt":"x"`)
			does(reducer.WordIdle, "Stop", `,"stop_hook_active":false`)
			for _, call := range []string{"t1", "t2", "t3"} {
				does(reducer.WordBusy, "PreToolUse", `,"tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"`+call+`"`)
				does(reducer.WordBlocked, "PermissionRequest", `,"tool_name":"Bash","tool_input":{"command":"make `+call+`"}`)
				does(reducer.WordBusy, "PostToolUse", `,"tool_name":"Bash","tool_input":{},"tool_use_id":"`+call+`"`)
				does(reducer.WordIdle, "Stop", `,"stop_hook_active":true`)
				does(reducer.WordIdle, "PreToolUse", `,"tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"`+call+`"`)
			}
			ends := 0
			for _, e := range events(t, bob) {
				if e.Kind == wire.TurnIdle {
					ends++
				}
			}
			if ends != 4 {
				t.Errorf("%d ends", ends)
			}
			does(reducer.WordBlocked, "PermissionRequest", `,"tool_name":"Edit","tool_input":{"file_path":"a.go"}`)
			if tool == Claude {
				does(reducer.WordIdle, "Notification", `,"notification_type":"idle_prompt","message":"waiting"`)
			}
		})
	}
}

// Each of several permission requests has its own answer, also a sub-agent's. Under a runner, a hook's report and the
// screen's are about one dialog.
func TestAnswersAreToldApart(t *testing.T) {
	t.Parallel()
	const (
		busy      = `{"type":"session.status","properties":{"sessionID":"o1","status":{"type":"busy"}}}`
		child     = `{"type":"session.created","properties":{"sessionID":"o2","info":{"id":"o2","parentID":"o1"}}}`
		asks      = `{"type":"permission.asked","properties":{"id":"p1","sessionID":"o1","permission":"bash","patterns":["ls"]}}`
		asksToo   = `{"type":"permission.asked","properties":{"id":"p2","sessionID":"o1","permission":"bash","patterns":["cat"]}}`
		childAsks = `{"subagent":true,"type":"permission.asked","properties":{"id":"p3","sessionID":"o2","permission":"edit","patterns":["a.go"]}}`
		may       = `{"type":"permission.replied","properties":{"sessionID":"o1","requestID":"p1","reply":"once"}}`
		mayNot    = `{"type":"permission.replied","properties":{"sessionID":"o1","requestID":"p2","reply":"reject"}}`
		childMay  = `{"subagent":true,"type":"permission.replied","properties":{"sessionID":"o2","requestID":"p3","reply":"once"}}`
	)
	bob := team(t)
	check := func(want ...string) {
		t.Helper()
		var open []string
		for _, w := range state(t, bob).Session().Requests {
			open = append(open, strings.TrimSpace(w.ID+" "+w.Prompt))
		}
		same(t, "open", open, want...)
	}
	now := time.Now()
	for _, in := range []string{busy, child, asks, asksToo, childAsks} {
		call1(t, OpenCode, bob, in, now)
	}
	check("p1 ls", "p2 cat", "p3 a.go")
	call1(t, OpenCode, bob, may, now)
	check("p2 cat", "p3 a.go")
	call1(t, OpenCode, bob, childMay, now)
	check("p2 cat")
	call1(t, OpenCode, bob, mayNot, now)
	check()

	underRunner(t, bob)
	shown := wire.Event{Source: "pty", Kind: "confirm_required"}.With("id", "d1").With("tool", "bash").With("prompt", "ls -l")
	now = now.Add(time.Minute)
	for range 2 { // in either order
		bob.Log().Append(ctx, shown)
		call1(t, OpenCode, bob, asks, now)
		bob.Log().Append(ctx, shown)
		check("d1 ls -l")
		call1(t, OpenCode, bob, may, now)
		check()
		call1(t, OpenCode, bob, asksToo, now)
		bob.Log().Append(ctx, shown)
		check("d1 ls -l")
		bob.Log().Append(ctx, wire.Event{Source: "pty", Kind: "state_change"}.With("new", "thinking").With("id", "d1"))
		check()
		now = now.Add(time.Minute)
	}
}

// The same words again are another event, however soon.
func TestSameWordsAgain(t *testing.T) {
	t.Parallel()
	const bash = `,"tool_name":"Bash","tool_input":{"command":"ls"}`
	status := func(of string) string {
		return `{"type":"session.status","properties":{"sessionID":"s1","status":` + of + `}}`
	}
	busy, retry := status(`{"type":"busy"}`), status(`{"type":"retry","attempt":1,"message":"overloaded"}`)
	for about, c := range map[string]struct {
		tool  string
		calls []string
		want  []string
	}{
		"permission": {Codex, []string{
			calledWith(Codex, "PermissionRequest", bash), calledWith(Codex, "PostToolUse", bash+`,"tool_use_id":"c1"`), calledWith(Codex, "PermissionRequest", bash),
		}, []string{"confirm_required", "tool_call_end", "confirm_required"}},
		"form": {Claude, []string{
			calledWith(Claude, "UserPromptSubmit", `,"prompt":"x"`),
			calledWith(Claude, "Elicitation", `,"message":"name?"`), calledWith(Claude, "ElicitationResult", `,"action":"accept"`),
			calledWith(Claude, "Elicitation", `,"message":"name?"`), calledWith(Claude, "ElicitationResult", `,"action":"accept"`),
		}, []string{"turn_started", "waiting_for_input", "state_change thinking", "waiting_for_input", "state_change thinking"}},
		"note": {Claude, []string{
			calledWith(Claude, "Notification", `,"notification_type":"permission_prompt","message":"m"`), calledWith(Claude, "PostToolUse", bash+`,"tool_use_id":"c1"`),
			calledWith(Claude, "Notification", `,"notification_type":"permission_prompt","message":"m"`),
		}, []string{"confirm_required", "tool_call_end", "confirm_required"}},
		"compacts": {Claude, []string{
			calledWith(Claude, "PreCompact", `,"trigger":"auto"`), calledWith(Claude, "PostCompact", `,"trigger":"auto"`), calledWith(Claude, "PreCompact", `,"trigger":"auto"`),
		}, []string{"state_change thinking compacting", "state_change thinking", "state_change thinking compacting"}},
		"retry": {OpenCode, []string{busy, retry, busy, retry, busy},
			[]string{"turn_started", "stream_error", "state_change thinking API retry 1", "state_change thinking", "stream_error", "state_change thinking API retry 1", "state_change thinking"}},
	} {
		t.Run(about, func(t *testing.T) {
			bob := team(t)
			now := time.Now().Add(time.Second) // all within one moment
			for _, in := range c.calls {
				call1(t, c.tool, bob, in, now)
			}
			var got []string
			for _, e := range events(t, bob) {
				got = append(got, strings.TrimSpace(e.Kind+" "+strings.TrimSpace(e.Text("new")+" "+e.Text("detail"))))
			}
			same(t, about, got, c.want...)
		})
	}
}

// A sub-agent of OpenCode is a session with a parent: its turns are its own.
func TestChildSessions(t *testing.T) {
	t.Parallel()
	bob := team(t)
	now := time.Now()
	for _, in := range []string{
		`{"type":"session.created","properties":{"sessionID":"o1","info":{"id":"o1"}}}`,
		`{"type":"session.status","properties":{"sessionID":"o1","status":{"type":"busy"}}}`,
		`{"type":"session.created","properties":{"sessionID":"o2","info":{"id":"o2","parentID":"o1"}}}`,
		`{"subagent":true,"type":"session.status","properties":{"sessionID":"o2","status":{"type":"busy"}}}`,
		`{"subagent":true,"type":"message.part.updated","properties":{"sessionID":"o2","part":{"type":"tool","tool":"bash","callID":"c1","state":{"status":"running"}}}}`,
		`{"subagent":true,"type":"permission.asked","properties":{"id":"per_1","sessionID":"o2","permission":"bash","metadata":{"command":"ls"}}}`,
	} {
		call1(t, OpenCode, bob, in, now)
	}
	s := state(t, bob)
	if s.Session().ID != "o1" || s.Session().Activity != reducer.Confirming {
		t.Errorf("%+v", s.Session())
	}
	for _, in := range []string{
		`{"subagent":true,"type":"permission.replied","properties":{"sessionID":"o2","requestID":"per_1","reply":"once"}}`,
		`{"subagent":true,"type":"session.idle","properties":{"sessionID":"o2"}}`,
		`{"subagent":true,"type":"session.error","properties":{"sessionID":"o2","error":{"name":"MessageAbortedError"}}}`,
		`{"type":"session.deleted","properties":{"sessionID":"o2","info":{"id":"o2","parentID":"o1"}}}`,
	} {
		call1(t, OpenCode, bob, in, now)
	}
	s = state(t, bob)
	if s.Session().ID != "o1" || s.Session().Activity != reducer.ToolRunning || len(s.Others) != 0 {
		t.Errorf("%+v", s)
	}
	if !s.Session().Turn.IsOpen() || s.Session().Turn.ID != "o1#1" {
		t.Errorf("%+v", s.Session())
	}
}
