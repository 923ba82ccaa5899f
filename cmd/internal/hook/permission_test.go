package hook

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/reducer/ask"
)

// What rules see of a request of Claude Code is what its tool will use, whole; and what asks for more than that says
// they do not allow.
func TestPermission(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for about, c := range map[string]struct {
		fields string
		want   agents.Permission // Tool "": nobody is asked
	}{
		"command":         {`"tool_name":"Bash","tool_input":{"command":"make","description":"ls"}`, agents.Permission{Tool: "Bash", Input: "make", IsCommand: true}},
		"long":            {`"tool_name":"Bash","tool_input":{"command":"` + long + `"}`, agents.Permission{Tool: "Bash", Input: long, IsCommand: true}},
		"without sandbox": {`"tool_name":"Bash","tool_input":{"command":"make","dangerouslyDisableSandbox":true}`, agents.Permission{Tool: "Bash", Input: "make", IsCommand: true, IsRisky: true}},
		"with sandbox":    {`"tool_name":"Bash","tool_input":{"command":"make","dangerouslyDisableSandbox":false}`, agents.Permission{Tool: "Bash", Input: "make", IsCommand: true}},
		"no command":      {`"tool_name":"Bash","tool_input":{"cmd":"make"}`, agents.Permission{Tool: "Bash", IsCommand: true, IsRisky: true}},
		"words":           {`"tool_name":"Bash","tool_input":{"command":["make"]}`, agents.Permission{Tool: "Bash", IsCommand: true, IsRisky: true}},
		"file":            {`"tool_name":"Edit","tool_input":{"command":"ls","file_path":"/a.go"}`, agents.Permission{Tool: "Edit", Input: "/a.go"}},
		"unknown tool":    {`"tool_name":"mcp__x__y","tool_input":{"command":"ls","host":"prod"}`, agents.Permission{Tool: "mcp__x__y", Input: `{"command":"ls","host":"prod"}`}},
		"no arguments":    {`"tool_name":"mcp__x__y"`, agents.Permission{Tool: "mcp__x__y", IsRisky: true}},
		"a question":      {`"tool_name":"AskUserQuestion","tool_input":{"questions":[]}`, agents.Permission{}},
		"two questions":   {`"tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"A?","options":[{"label":"a"}]},{"question":"B?","options":[{"label":"b"}]}]}`, agents.Permission{}},
		"several answers": {`"tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"A?","multiSelect":true,"options":[{"label":"a"}]}]}`, agents.Permission{}},
		"no plan":         {`"tool_name":"ExitPlanMode","tool_input":{}`, agents.Permission{}},
		"a plan":          {`"tool_name":"ExitPlanMode","tool_input":{"plan":"x"}`, agents.Permission{Tool: "ExitPlanMode", Input: `{"plan":"x"}`}},
		"a sub-agent's":   {`"agent_id":"a1","agent_type":"Explore","tool_name":"Bash","tool_input":{"command":"make"}`, agents.Permission{Tool: "Bash", Input: "make", IsCommand: true}},
	} {
		bob := team(t)
		asks := func(mayAsk bool) (asked agents.Permission, all []string) {
			call := called(bob, Claude, io.Discard, io.Discard)
			call.MayAsk = mayAsk
			if err := call.parse([]byte(calledWith(Claude, "PermissionRequest", ","+c.fields))); err != nil {
				t.Errorf("%s: %v", about, err)
			}
			if all = toldAll(call.Events); call.Permission != nil {
				asked, all = *call.Permission, append(all, told(call.Permission.Event))
			}
			return asked, all
		}
		asked, tells := asks(true)
		got := asked
		if got.Tool != c.want.Tool || got.Input != c.want.Input || got.IsCommand != c.want.IsCommand || got.IsRisky != c.want.IsRisky {
			t.Errorf("%s: asked %+.300v", about, got)
		}
		if shows := (strings.Contains(asked.Prompt, got.Input) || about == "a plan" && asked.Prompt == "x") && strings.Contains(asked.Prompt, "sandbox") == (about == "without sandbox"); !shows {
			t.Errorf("%s: who answers sees only %q", about, asked.Prompt)
		}
		if all := strings.Join(tells, "\n"); strings.Count(all, "confirm_required") != 1 {
			t.Errorf("%s: the log has\n%.500s", about, all)
		}
		if asked, _ = asks(false); asked.Tool != "" {
			t.Errorf("%s: where nothing may wait, it asked %+.300v", about, asked)
		}
	}
}

// Codex opens its dialog when the hook has answered: only rules are asked, and without their verdict the answer is empty.
func TestPermissionByRule(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]agents.Permission{
		`"tool_name":"Bash","tool_input":{"command":"make","description":"Builds it"}`:           {Tool: "Bash", Input: "make", IsCommand: true},
		`"tool_name":"Bash","tool_input":{"command":"make","description":"network-access a.io"}`: {Tool: "Bash", Input: "make", IsCommand: true, IsRisky: true},
		`"tool_name":"Bash","tool_input":{"command":["make"]}`:                                   {Tool: "Bash", IsCommand: true, IsRisky: true},
		`"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch"}`:                   {Tool: "apply_patch", Input: `{"command":"*** Begin Patch"}`},
	} {
		for verdict, answer := range map[string]string{
			"":      "{}\n",
			"allow": `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}` + "\n",
			"deny":  `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"[atm] a rule says no"}}}` + "\n",
		} {
			in := `{"session_id":"s1","turn_id":"t1","hook_event_name":"PermissionRequest",` + fields + "}"
			var out strings.Builder
			c := called(team(t), Codex, &out, io.Discard)
			c.MayAsk = true
			must(t, c.parse([]byte(in)))
			got := *c.Permission
			var err error
			if verdict == "" { // there are no rules
				_, err = c.carryOut(ctx)
			} else {
				err = c.give(ask.Answer{By: ask.ByRule, Deny: verdict == "deny"})
			}
			if err != nil || out.String() != answer {
				t.Errorf("%s, %q: answers %s, %v", fields, verdict, out.String(), err)
			}
			if got.Tool != want.Tool || got.Input != want.Input || got.IsCommand != want.IsCommand || got.IsRisky != want.IsRisky {
				t.Errorf("%s: asks for %+v", fields, got)
			}
		}
	}
}

// asking is a call of Claude Code's hook that asks, of which others may answer.
func asking(t *testing.T, stdout io.Writer, in string) *call {
	t.Helper()
	c := called(team(t), Claude, stdout, io.Discard)
	c.MayAsk = true
	must(t, c.parse([]byte(in)))
	return c
}

// The program is given the answer, and what goes wrong with that is told to whoever asked.
func TestVerdict(t *testing.T) {
	t.Parallel()
	const asks = `{"session_id":"s1","prompt_id":"p1","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make"}}`
	for _, c := range []struct {
		ask.Answer
		want string
	}{
		{ask.Answer{By: "lead"}, `{"behavior":"allow"}`},
		{ask.Answer{By: "lead", Deny: true}, `{"behavior":"deny","message":"[atm] lead says no"}`},
		{ask.Answer{By: ask.ByRule, Deny: true, Reason: "use \"go\"\nor make"}, `{"behavior":"deny","message":"[atm] a rule says no: use \"go\"\nor make"}`},
	} {
		var out strings.Builder
		if err := asking(t, &out, asks).give(c.Answer); err != nil {
			t.Errorf("%+v: %v", c.Answer, err)
		}
		if want := `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":` + c.want + "}}\n"; out.String() != want {
			t.Errorf("%+v: %s, want %s", c.Answer, out.String(), want)
		}
	}
	if err := asking(t, brokenWriter{}, asks).give(ask.Answer{}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a broken pipe: %v", err)
	}
}

// What Claude Code would allow for longer is offered as its own option, shown whole; else not at all.
func TestAlways(t *testing.T) {
	t.Parallel()
	for suggested, want := range map[string]string{
		`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"make:*"}],"behavior":"allow","destination":"localSettings"}]`:                           "Always allow Bash(make:*) in this project",
		`[{"type":"addDirectories","directories":["/repo"],"destination":"session"},{"type":"setMode","mode":"acceptEdits","destination":"session"}]`:           "Always allow /repo in this session; mode acceptEdits in this session",
		`[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"deny","destination":"session"}]`:                                                         "",
		`[{"type":"setMode","mode":"acceptEdits","destination":"session"},{"type":"somethingNew"}]`:                                                             "",
		`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"` + strings.Repeat("x", 300) + `"}],"behavior":"allow","destination":"localSettings"}]`: "",
		`[]`: "", `"x"`: "",
	} {
		var out strings.Builder
		in := calledWith(Claude, "PermissionRequest", `,"tool_name":"Bash","tool_input":{"command":"make"},"permission_suggestions":`+suggested)
		c := asking(t, &out, in)
		asked := c.Permission
		must(t, c.give(ask.Answer{By: "me", Option: "always"}))
		switch {
		case want == "" && asked.Options != nil:
			t.Errorf("%s: offers %+v", suggested, asked.Options)
		case want != "" && (len(asked.Options) != 3 || asked.Options[1].Label != want || !strings.Contains(out.String(), `"behavior":"allow","updatedPermissions":`+suggested)):
			t.Errorf("%s: offers %+v, gives %s", suggested, asked.Options, out.String())
		}
	}
}

// A question with options is asked with them, and a plan as one; the answer is the input, with what was chosen. No rule
// answers a question.
func TestChoice(t *testing.T) {
	t.Parallel()
	const (
		database = `{"questions":[{"question":"Which database?","header":"DB","options":[{"label":"SQLite","description":"one file"},{"label":"Postgres","description":""}],"multiSelect":false}]}`
		plan     = `{"plan":"1. do\n2. test"}`
	)
	for _, c := range []struct {
		tool, input   string
		answer        ask.Answer
		asks, options string
		isChoice      bool
		want          string
	}{
		{"AskUserQuestion", database, ask.Answer{By: "me", Option: "2"}, "Which database?", "1 SQLite, 2 Postgres, deny No answer", true,
			`{"behavior":"allow","updatedInput":{"answers":{"Which database?":"Postgres"},` + database[1:] + `}`},
		{"AskUserQuestion", database, ask.Answer{By: "me", Option: "deny", Deny: true, Reason: "MySQL"}, "Which database?", "1 SQLite, 2 Postgres, deny No answer", true,
			`{"behavior":"deny","message":"[atm] me says no: MySQL"}`},
		{"ExitPlanMode", plan, ask.Answer{By: "me", Option: "allow"}, "1. do\n2. test", "allow Approve the plan, deny Keep planning", false,
			`{"behavior":"allow","updatedInput":` + plan + `}`},
		{"ExitPlanMode", plan, ask.Answer{By: "me", Option: "deny", Deny: true, Reason: "more tests"}, "1. do\n2. test", "allow Approve the plan, deny Keep planning", false,
			`{"behavior":"deny","message":"[atm] me says no: more tests"}`},
	} {
		var out strings.Builder
		in := calledWith(Claude, "PermissionRequest", `,"tool_name":"`+c.tool+`","tool_input":`+c.input+`,"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]`)
		call := asking(t, &out, in)
		asked := call.Permission
		must(t, call.give(c.answer))
		if q := (ask.Question{Options: asked.Options}); asked.Prompt != c.asks || q.ListOptions() != c.options || asked.IsChoice != c.isChoice {
			t.Errorf("%s: asks %q with %q", c.tool, asked.Prompt, q.ListOptions())
		}
		if want := `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":` + c.want + "}}\n"; out.String() != want {
			t.Errorf("%s: answers %s, want %s", c.tool, out.String(), want)
		}
	}
}

// What asks a person for more than yes or no is told as people read it.
func TestPersonText(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"questions":[{"question":"Which db?","options":[{"label":"Postgres","description":"as before"},{"label":"SQLite"}]},{"question":"When?"}]}`: "Which db?\n1 Postgres (as before)\n2 SQLite\nWhen?",
		`{"plan":"1. do\n2. test"}`: "1. do\n2. test",
		`{"x":1}`:                   "",
	} {
		bob := team(t)
		call1(t, Claude, bob, calledWith(Claude, "PermissionRequest", `,"tool_name":"AskUserQuestion","tool_input":`+arguments), time.Now())
		all := events(t, bob)
		if got := all[len(all)-1].Text("prompt"); got != cmp.Or(want, arguments) {
			t.Errorf("asks %q, want %q", got, want)
		}
	}
}
