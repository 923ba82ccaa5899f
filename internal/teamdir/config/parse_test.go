package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

const wholeToml = `lead = "alice"             # absent: the member named lead
approvers = ["me"]

[members.me]
person = true

[members.alice]
role = "lead"
command = ["codex", "--full-auto"]

[members.bob]
role = "coder"
command = ["claude"]
cwd = "."
env = { LANG = "C.UTF-8", "X.Y" = "" }
driver = "auto"
inject = "body"
restart = "on-crash"
size = "120x30"
prompt = """
Run ` + "`atm primer`" + `,
then read your mail."""
after = ["alice"]
worktree = false

[[rules]]
role = "coder"
tool = "Bash(git *)"
decision = "allow"

[[rules]]
agent = "bob"
tool = "*"
decision = "deny"

[[on]]
event = ["blocked", "error"]
who = ["bob", "@lead"]
command = ["./notify.sh", "me"]
timeout = "5s"

[[on]]
event = "mail"
command = ["./mail.sh"]

[session]
enabled = true
output_capture = "log"
allow_human_input = false
auto_exit_on = "idle_timeout: 300s"
resume_cmd = "claude --resume '{session_id}'"
`

func TestParse(t *testing.T) {
	t.Parallel()
	p, mistakes := Parse([]byte(wholeToml), nil)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	want := &Config{
		Lead: "alice", Approvers: []wire.Name{"me"},
		Members: map[wire.Name]Member{
			"me":    {Person: true},
			"alice": {Role: "lead", Command: []string{"codex", "--full-auto"}},
			"bob": {
				Role: "coder", Command: []string{"claude"}, Cwd: ".", Env: map[string]string{"LANG": "C.UTF-8", "X.Y": ""}, Driver: "auto",
				Inject: "body", Restart: "on-crash", Size: "120x30", Prompt: "Run `atm primer`,\nthen read your mail.", After: []wire.Name{"alice"},
			},
		},
		Rules: policy.Rules{{Role: "coder", Tool: "Bash(git *)", Decision: policy.Allow}, {Agent: "bob", Tool: "*", Decision: policy.Deny}},
		On: []On{
			{Event: Words{"blocked", "error"}, Who: Words{"bob", "@lead"}, Command: []string{"./notify.sh", "me"}, Timeout: "5s"},
			{Event: Words{"mail"}, Command: []string{"./mail.sh"}},
		},
		Session: Session{Enabled: new(true), OutputCapture: "log", AllowHumanInput: new(false), AutoExitOn: new("idle_timeout: 300s"), ResumeCmd: new("claude --resume '{session_id}'")},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if r := p.Session.Rules(); r != (session.Rules{WhenIdle: 5 * time.Minute}) {
		t.Error(r)
	}
	if w := p.Session.ResumeWords("x"); !slices.Equal(w, []string{"claude", "--resume", "x"}) {
		t.Error(w)
	}
	for _, same := range []string{
		strings.ReplaceAll(wholeToml, "\n", "\r\n"),
		wholeToml + "# the end, without a line end",
	} {
		if p, mistakes := Parse([]byte(same), nil); len(mistakes) > 0 {
			t.Error(mistakes)
		} else if p.Lead != "alice" {
			t.Error(p)
		}
	}
	q := p.Policy("bob")
	data, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var back policy.Policy
	if err := json.Unmarshal(data, &back); err != nil || !back.Equal(q) || back.Rules.Decide(policy.Request{Tool: "Bash", Input: "git log"}) != policy.Allow || back.Check(policy.Answer, "bob", policy.Actor{Name: "me"}) != nil {
		t.Errorf("%s: %+v, %v", data, back, err)
	}
	back.Rules[0].Decision = policy.Deny
	if back.Equal(q) || (policy.Policy{}).Equal(policy.Policy{Approvers: []wire.Name{}}) {
		t.Error("different policies are equal")
	}
	if data, _ := json.Marshal(policy.Policy{Approvers: []wire.Name{}}); !strings.Contains(string(data), `"approvers":[]`) {
		t.Errorf("nobody is not everybody: %s", data)
	}
}

// Every mistake is reported with its line and column, or its key.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about, toml string
		want        []string // the beginning of each mistake
	}{
		{"nothing", "", nil},
		{"comments", "# x\n\n  # y", nil},
		{"unknown keys", "leed = \"a\"\n[member.bob]\nx = 1\n[members.bob]\ncomand = [\"x\"]\n[[rules]]\ntol = \"x\"\n[session]\nx = 1", []string{
			`line 1, column 1: unknown key "leed"`,
			`line 2, column 2: unknown key "member.bob"`,
			`line 5, column 1: unknown key "members.bob.comand"`,
			`line 7, column 1: unknown key "rules.tol"`,
			`line 9, column 1: unknown key "session.x"`,
			`rules[0]: a rule needs a tool`,
		}},
		{"a wrong type", "leed = 1\n[members.bob]\nperson = \"yes\"\nsize = 120", []string{`line 3, column 10: members.bob.person: cannot decode TOML string into struct field config.Member.Person of type bool`}},
		{"a string for a list", "approvers = \"me\"", []string{`line 1, column 13: approvers: cannot decode TOML string`}},
		{"a number in a list", "[members.bob]\nafter = [\n \"alice\",\n 1]", []string{`line 4, column 2: members.bob.after: cannot decode TOML integer`}},
		{"a number in a table", "[members.bob]\nenv = { A = 1 }", []string{`line 2, column 13: members.bob.env: cannot decode TOML integer`}},
		{"a number for a member", "[members]\ncarl = 1", []string{`line 2, column 8: members.carl: cannot decode TOML integer`}},
		{"a large number", "[bridge]\nreplicas = 99999999999999999999", []string{`line 2, column 12: bridge.replicas: decimal number is too large`}},
		{"a member's session in one line", "members = { bob = { session = { enabeld = false, output_capture = \"tty\" } } }", []string{
			`line 1, column 33: unknown key "enabeld"`,
			`members.bob.session.output_capture: "tty" is not one of pipe, log`,
		}},
		{"values", "[members.bob]\ncommand = []\nenv = { ATM_RUN = \"x\", \"a=b\" = \"x\", \"\" = \"x\" }\ndriver = \"claud\"\nrestart = \"Always\"\nsize = \"120\"\ninject = \"run\"\n[members.carol]\ncommand = [\"\"]", []string{
			`members.bob.command: it is empty`,
			`members.bob.driver: "claud" is not one of auto, acp, amp, claude`,
			`members.bob.env: "" is set`,
			`members.bob.env: "ATM_RUN" is set`,
			`members.bob.env: "a=b" is set`,
			`members.bob.inject: "run" is not one of body, pointer, off`,
			`members.bob.restart: "Always" is not one of`,
			`members.bob.size: "120" is not a terminal size`,
			`members.carol.command: it is empty`,
		}},
		{"a mark before it", "\ufeffleed = 1", []string{`line 1, column 1: unknown key "leed"`}},
		{"who there is not", "lead = \"alise\"\napprovers = [\"me\", \"alice\", \"me@laptop\"]\n[members.alice]\nafter = [\"bob\"]\n[[rules]]\nagent = \"carl\"\ntool = \"*\"\ndecision = \"ask\"", []string{
			`approvers: "me" is not a member`,
			`lead: "alise" is not a member`,
			`members.alice.after: "bob" is not a member`,
			`rules[0].agent: "carl" is not a member`,
		}},
		{"no names", "lead = \"A\"\n[members.\"b c\"]\n[members.all]\n", []string{
			`lead: "A" is not a member`,
			`members.all: "all" is no name`,
			`members.b c: "b c" is not a name`,
		}},
		{"a person with a command", "[members.me]\nperson = true\ncommand = [\"x\"]", []string{`members.me: me is a person`}},
		{"rules", "[[rules]]\n[[rules]]\ntool = \"Bash(git\"\ndecision = \"alow\"\n[[rules]]\ntool = \"Bash(git:*)\"\n[[rules]]\nrole = \"coder\"\nagent = \"bob\"\ntool = \"(x)\"\ndecision = \"ask\"\n[members.bob]", []string{
			`rules[0]: a rule needs a tool`,
			`rules[1].decision: "alow" is not one of allow, deny, ask`,
			`rules[1].tool: "Bash(git": the pattern goes in parentheses`,
			`rules[2]: a rule needs a tool`,
			`rules[3].tool: "(x)" names no tool`,
			`rules[3]: a rule names a role or an agent`,
		}},
		{"tools", "[[rules]]\ntool = \"Bash()\"\ndecision = \"deny\"\n[[rules]]\ntool = \" Bash\"\ndecision = \"deny\"\n[[rules]]\ntool = \"Bash)\"\ndecision = \"deny\"", []string{
			`rules[0].tool: the pattern is empty`,
			`rules[1].tool: " Bash" names no tool`,
			`rules[2].tool: "Bash)": the pattern goes in parentheses`,
		}},
		{"a bridge", "[bridge]\nhost = \"a b\"\nreplicas = 6", []string{
			`bridge.host: "a b" is not a name`,
			`bridge.replicas: 6 is not from 1 to 5`,
		}},
		{"a section of a member's own", "[members.bob.session]\nenabled = false\nx = 1\noutput_capture = \"tty\"", []string{
			`line 3, column 1: unknown key "members.bob.session.x"`,
			`members.bob.session.output_capture: "tty"`,
		}},
		{"rules in one line", "rules = [{ tool = \"*\", decision = \"ask\" }, { tol = 1 }]", []string{
			`line 1, column 46: unknown key "tol"`,
			`rules[1]: a rule needs a tool`,
		}},
		{"round in a circle", "[members.a]\nafter = [\"c\"]\n[members.b]\nafter = [\"a\"]\n[members.c]\nafter = [\"b\"]\n[members.d]\nafter = [\"d\"]", []string{
			`members.a.after: a cycle: a waits for itself`,
			`members.b.after: a cycle: b waits for itself`,
			`members.c.after: a cycle: c waits for itself`,
			`members.d.after: a cycle: d waits for itself`,
		}},
		{"commands on events", "[[on]]\n[[on]]\nevent = \"urgent\"\nwho = [\"carl\", \"@coder\"]\ncommand = [\"x\"]\ntimeout = \"5\"", []string{
			`on[0]: an event and a command are needed`,
			`on[1].event: "urgent" is not one of mail, urgent-mail`,
			`on[1].timeout: "5" is not a duration`,
			`on[1].who: "@coder" is no group`,
			`on[1].who: "carl" is not a member`,
		}},
		{"whose mail", "[groups]\nbackend = [\"a\"]\n[members.a]\nrole = \"coder\"\nfrom = []\n[members.b]\nfrom = [\"a\", \"@backend\", \"@coder\", \"me@laptop\"]\n[members.c]\nfrom = [\"carl\", \"@coders\", \"all\"]", []string{
			`members.a.from: it is empty; leave it out for everybody`,
			`members.c.from: "@coders" is no group`,
			`members.c.from: "all" is not a member`,
			`members.c.from: "carl" is not a member`,
		}},
		{"process substitution", "[session]\nresume_cmd = \"diff <(a) b\"", []string{`session.resume_cmd: `}},
		{"session", "[session]\noutput_capture = \"tty\"\nauto_exit_on = \"idle_timeout: 5\"\nresume_cmd = \"claude '\"", []string{
			`session.auto_exit_on: "idle_timeout: 5" is not`,
			`session.output_capture: "tty" is not`,
			`session.resume_cmd: `,
		}},
		{"twice", "lead = \"a\"\nlead = \"a\"\n[members.a]\n[members.a]\n[members]\n[members]\n", []string{`line 2, column 1: lead: key lead is already defined`}},
		{"a table and a value", "members.a.role = \"x\"\n[members.a]\nperson = true\nrole.x = 1", []string{`line 2, column 2: members.a: table a already exists`}},
		{"syntax, and what is around it", "leed = \"x\"\nlead = alice\n[members.a]\nperson = 1", []string{`line 2, column 8: unexpected character U+0061 'a' at start of value`}},
		{"sizes", "[members.a]\nsize = \"0x0\"\n[members.b]\nsize = \"120x\"\n[members.c]\nsize = \"-1x30\"\n[members.d]\nsize = \"1001x30\"\n[members.e]\nsize = \"120X30\"", []string{
			`members.a.size: "0x0"`,
			`members.b.size: "120x"`,
			`members.c.size: "-1x30"`,
			`members.d.size: "1001x30"`,
			`members.e.size: "120X30"`,
		}},
		{"a person's worktree", "[members.me]\nperson = true\nworktree = true", []string{`members.me: me is a person`}},
		{"syntax in a header", "leed = 1\n[members.a\nperson = 1", []string{`line 2, column 11: expected ']'`}},
		{"a string without an end", "lead = \"a", []string{`line 1, column 9: unterminated basic string`}},
		{"what no TOML may be", "a = 08\n", []string{`line 1, column 5: integers cannot`}},
	} {
		_, mistakes := Parse([]byte(c.toml), nil)
		if !slices.EqualFunc(mistakes, c.want, strings.HasPrefix) {
			t.Errorf("%s:\n%s\nnot\n%s", c.about, strings.Join(mistakes, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A group has each of its members once.
func TestNamedOften(t *testing.T) {
	c, mistakes := Parse([]byte("[groups]\ng = [\"bob\", \"al\", \"bob\", \"me@laptop\", \"al\"]\n[members]\nal = {}\nbob = {}\n"), nil)
	if got := c.Groups["g"]; len(mistakes) > 0 || !slices.Equal(got, []wire.Name{"al", "bob", "me@laptop"}) {
		t.Errorf("%v: %v", got, mistakes)
	}
}

// A member's own session section has the rest from the team's, however it is written.
func TestSessionOf(t *testing.T) {
	const team = "members.dora.session.enabled = false\n[session]\noutput_capture = \"log\"\nallow_human_input = false\nauto_exit_on = \"goal_complete\"\nresume_cmd = \"x\"\n"
	for _, own := range []string{
		"members = { bob = { session = { allow_human_input = true, auto_exit_on = \"\" } } }\n" + strings.TrimPrefix(team, "members.dora.session.enabled = false\n"),
		team + "[members.bob.session]\nAllow_Human_Input = true\nauto_exit_on = \"\"\n",
	} {
		c, mistakes := Parse([]byte(own), nil)
		s := c.SessionOf("bob")
		if len(mistakes) > 0 || s.Enabled != nil || s.OutputCapture != "log" || s.IsMute() || s.Rules() != (session.Rules{}) || !slices.Equal(s.ResumeWords("1"), []string{"x"}) {
			t.Errorf("%+v: %v", s, mistakes)
		}
		if s := c.SessionOf("carol"); !s.IsMute() || !s.Rules().OnGoal {
			t.Errorf("%+v", s)
		}
	}
}

// Any file is parsed or gives mistakes.
func FuzzParse(f *testing.F) {
	f.Add([]byte(wholeToml))
	for _, s := range []string{"[[rules]]\n[rules.x]\n", "[a]\n[[a]]\n", "a.b=1\n[a]\n", "a={b=1}\na.c=2", "rules=[]\n[[rules]]", "a=[[", "\"\"=1", "[members]\nbob=1", "session=2026-05-01\nlead=1979-05-27T00:00:00Z"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, mistakes := Parse(data, nil)
		for _, m := range mistakes {
			if m == "" {
				t.Error(mistakes)
			}
		}
		if len(mistakes) == 0 {
			for i := range p.Rules {
				if p.Rules[i].Tool == "" || p.Rules[i].Decision == "" {
					t.Errorf("a rule of nothing: %+v", p.Rules[i])
				}
			}
		}
	})
}

// A rule is for an agent, for a role or for everybody.
func TestRulesOfSomebody(t *testing.T) {
	const rules = `[members]
bob = { role = "coder" }
carol = {}
dave = {}
[[rules]]
agent = "carol"
tool = "Bash"
decision = "deny"
[[rules]]
role = "coder"
tool = "Bash"
decision = "allow"
[[rules]]
tool = "Edit"
decision = "deny"
`
	config, mistakes := Parse([]byte(rules), nil)
	for _, c := range []struct {
		agent wire.Name
		tool  string
		want  policy.Decision
	}{
		{"bob", "Bash", policy.Allow}, {"carol", "Bash", policy.Deny}, {"dave", "Bash", policy.Ask},
		{"dave", "Edit", policy.Deny}, {"bob", "Read", policy.Ask},
	} {
		if got := config.Policy(c.agent).Rules.Decide(policy.Request{Tool: c.tool, Input: "x"}); got != c.want {
			t.Errorf("%s, %s: %s, not %s; %v", c.agent, c.tool, got, c.want, mistakes)
		}
	}
}

// A command is run on its events, for its members.
func TestOn(t *testing.T) {
	c, _ := Parse([]byte(wholeToml), nil)
	for _, of := range []struct {
		event  string
		member wire.Name
		want   string
	}{
		{"blocked", "bob", "./notify.sh"}, {"error", "alice", "./notify.sh"}, {"blocked", "me", ""}, {"idle", "bob", ""},
		{"mail", "me", "./mail.sh"}, {"urgent-mail", "me", "./mail.sh"},
	} {
		got := ""
		for _, o := range c.OnFor(of.member) {
			if o.Matches(of.event) {
				got += o.Command[0]
			}
		}
		if got != of.want {
			t.Errorf("%s of %s: %q, not %q", of.event, of.member, got, of.want)
		}
	}
	grouped, mistakes := Parse([]byte("[members.a]\n[members.b]\nrole=\"x\"\n[members.c]\n[groups]\ng=[\"a\"]\n[[on]]\nevent=\"mail\"\nwho=\"@g, @x\"\ncommand=[\"c\"]"), nil)
	if len(mistakes) > 0 || len(grouped.OnFor("a")) != 1 || len(grouped.OnFor("b")) != 1 || len(grouped.OnFor("c")) != 0 {
		t.Error(mistakes, grouped)
	}
	var back []On
	data, err := json.Marshal(c.On)
	if err != nil || json.Unmarshal(data, &back) != nil || !cmp.Equal(back, c.On, cmpopts.EquateEmpty()) || back[0].Deadline() != 5*time.Second {
		t.Errorf("%s: %v, %v", data, back, err)
	}
}
