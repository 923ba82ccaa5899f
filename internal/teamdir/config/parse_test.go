package config

import (
	"encoding/json"
	"fmt"
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
		Session: Session{Enabled: new(true), OutputCapture: "log", AutoExitOn: "idle_timeout: 300s", ResumeCmd: "claude --resume '{session_id}'"},
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

// Every mistake is reported with its line.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about, toml string
		want        []string // the beginning of each mistake
	}{
		{"nothing", "", nil},
		{"comments", "# x\n\n  # y", nil},
		{"unknown keys", "leed = \"a\"\n[member.bob]\nx = 1\n[members.bob]\ncomand = [\"x\"]\n[[rules]]\ntol = \"x\"\n[session]\nx = 1", []string{
			`1: unknown key "leed"`, `2: unknown key "member"`, `5: unknown key "comand" in members.bob`,
			`6: a rule needs a tool`, `7: unknown key "tol" in rules; did you mean "tool"?`, `9: unknown key "x" in session`,
		}},
		{"a wrong type", "leed = 1\n[members.bob]\nperson = \"yes\"\nsize = 120", []string{"1: unknown key \"leed\"", "3: members.bob.person: true or false is needed, not a TOML string", "4: members.bob.size: a string in quotes is needed, not a TOML integer"}},
		{"a string for a list", "approvers = \"me\"", []string{"1: approvers: a list of strings is needed, not a TOML string"}},
		{"a number for a list", "rules = 1", []string{"1: rules: a list of tables is needed, not a TOML integer"}},
		{"a number in a list", "[members.bob]\nafter = [\n \"alice\",\n 1]", []string{"4: members.bob.after: a string in quotes is needed, not a TOML integer"}},
		{"a number in a table", "[members.bob]\nenv = { A = 1 }", []string{"2: members.bob.env: a string in quotes is needed"}},
		{"a list for a table", "[[session]]\nenabled = 1", []string{"1: session: a table is needed, not a TOML array table"}},
		{"a table for a string", "[lead.x]", []string{"1: lead.x: a string in quotes is needed, not a TOML table"}},
		{"a number for a member", "[members]\ncarl = 1", []string{"2: members.carl: a table is needed, not a TOML integer"}},
		{"a large number", "[bridge]\nreplicas = 99999999999999999999", []string{"2: bridge.replicas: decimal number is too large"}},
		{"a member's session in one line", "members = { bob = { session = { enabeld = false, output_capture = \"tty\" } } }", []string{
			`1: output_capture is "tty"`, `1: unknown key "enabeld"`,
		}},
		{"values", "[members.bob]\ncommand = []\nenv = { ATM_RUN = \"x\", \"a=b\" = \"x\", \"\" = \"x\" }\ndriver = \"claud\"\nrestart = \"Always\"\nsize = \"120\"\ninject = \"run\"\n[members.carol]\ncommand = [\"\"]", []string{
			"2: command is empty", `3: env: "`, `3: env: "`, `3: env: "`,
			`4: driver is "claud", not one of auto, acp, amp, claude`, `5: restart is "Always", not`, `6: size: "120" is not a terminal size`,
			`7: inject is "run", not one of body, pointer, off`, "9: command is empty",
		}},
		{"a mark before it", "\ufeffleed = 1", []string{`1: unknown key "leed"`}},
		{"who there is not", "lead = \"alise\"\napprovers = [\"me\", \"alice\", \"me@laptop\"]\n[members.alice]\nafter = [\"bob\"]\n[[rules]]\nagent = \"carl\"\ntool = \"*\"\ndecision = \"ask\"", []string{
			`1: lead names "alise"`, `2: approvers names "me"`, `4: after names "bob"`, `6: agent names "carl"`,
		}},
		{"no names", "lead = \"A\"\n[members.\"b c\"]\n[members.all]\n", []string{"1: lead names ", "2: members: ", "3: members: "}},
		{"a person with a command", "[members.me]\nperson = true\ncommand = [\"x\"]", []string{"1: me is a person"}},
		{"rules", "[[rules]]\n[[rules]]\ntool = \"Bash(git\"\ndecision = \"alow\"\n[[rules]]\ntool = \"Bash(git:*)\"\n[[rules]]\nrole = \"coder\"\nagent = \"bob\"\ntool = \"(x)\"\ndecision = \"ask\"\n[members.bob]", []string{
			"1: a rule needs a tool", `3: tool: "Bash(git": the pattern goes in parentheses`, `4: decision is "alow", not one of allow, deny, ask`,
			"5: a rule needs a tool", "7: a rule names a role or an agent", `10: tool: "(x)" names no tool`,
		}},
		{"tools", "[[rules]]\ntool = \"Bash()\"\ndecision = \"deny\"\n[[rules]]\ntool = \" Bash\"\ndecision = \"deny\"\n[[rules]]\ntool = \"Bash)\"\ndecision = \"deny\"", []string{
			"2: tool: the pattern is empty", `5: tool: " Bash" names no tool`, `8: tool: "Bash)": the pattern goes in parentheses`,
		}},
		{"a bridge", "[bridge]\nhost = \"a b\"\nreplicas = 6", []string{"2: host: ", "3: replicas is 6, not from 1 to 5"}},
		{"a section of a member's own", "[members.bob.session]\nenabled = false\nx = 1\noutput_capture = \"tty\"", []string{
			`3: unknown key "x" in members.bob.session`, `4: output_capture is "tty"`,
		}},
		{"rules in one line", "rules = [{ tool = \"*\", decision = \"ask\" }, { tol = 1 }]", []string{"1: a rule needs a tool", `1: unknown key "tol"`}},
		{"round in a circle", "[members.a]\nafter = [\"c\"]\n[members.b]\nafter = [\"a\"]\n[members.c]\nafter = [\"b\"]\n[members.d]\nafter = [\"d\"]", []string{
			"2: after has a cycle: a waits for itself", "8: after has a cycle: d waits for itself",
		}},
		{"commands on events", "[[on]]\n[[on]]\nevent = \"urgent\"\nwho = [\"carl\", \"@coder\"]\ncommand = [\"x\"]\ntimeout = \"5\"", []string{
			"1: an event and a command are needed", `3: event is "urgent", not one of mail, urgent-mail`, `4: who names "@coder", which is no group`, `4: who names "carl"`, `6: timeout is "5"`,
		}},
		{"whose mail", "[groups]\nbackend = [\"a\"]\n[members.a]\nrole = \"coder\"\nfrom = []\n[members.b]\nfrom = [\"a\", \"@backend\", \"@coder\", \"me@laptop\"]\n[members.c]\nfrom = [\"carl\", \"@coders\", \"all\"]", []string{
			"5: from is empty; leave it out for everybody", `9: from names "@coders", which is no group`, `9: from names "all", which is not`, `9: from names "carl", which is not`,
		}},
		{"process substitution", "[session]\nresume_cmd = \"diff <(a) b\"", []string{"2: resume_cmd:"}},
		{"session", "[session]\noutput_capture = \"tty\"\nauto_exit_on = \"idle_timeout: 5\"\nresume_cmd = \"claude '\"", []string{
			`2: output_capture is "tty"`, `3: auto_exit_on is "idle_timeout: 5"`, "4: resume_cmd:",
		}},
		{"twice", "lead = \"a\"\nlead = \"a\"\n[members.a]\n[members.a]\n[members]\n[members]\n", []string{"2: key lead is already defined"}},
		{"a table and a value", "members.a.role = \"x\"\n[members.a]\nperson = true\nrole.x = 1", []string{"2: "}},
		{"syntax, and what is around it", "leed = \"x\"\nlead = alice\n[members.a]\nperson = 1", []string{"2: a value is missing"}},
		{"a type, then syntax", "lead = 1\n[members.a]\nrole = \n", []string{"1: lead: "}},
		{"syntax, several times", "leed = \"x\"\nlead = alice\n[members.a]\nrole = \nperson = 1\ncommand = [\"x\"\n[members.b]\nperson = 1", []string{"2: a value is missing"}},
		{"sizes", "[members.a]\nsize = \"0x0\"\n[members.b]\nsize = \"120x\"\n[members.c]\nsize = \"-1x30\"\n[members.d]\nsize = \"1001x30\"\n[members.e]\nsize = \"120X30\"", []string{
			`2: size: "0x0"`, `4: size: "120x"`, `6: size: "-1x30"`, `8: size: "1001x30"`, `10: size: "120X30"`,
		}},
		{"a person's worktree", "[members.me]\nperson = true\nworktree = true", []string{"1: me is a person"}},
		{"syntax in a header", "leed = 1\n[members.a\nperson = 1", []string{"2: "}},
		{"a string without an end", "lead = \"a", []string{"1: "}},
		{"what no TOML may be", "a = 08\n", []string{"1: "}},
	} {
		_, mistakes := Parse([]byte(c.toml), nil)
		var got []string
		for _, m := range mistakes {
			got = append(got, fmt.Sprintf("%d: %s", m.Line, m.Text))
		}
		ok := len(got) == len(c.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s:\n%s\nnot\n%s", c.about, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if _, mistakes := Parse([]byte("leed = \"x\"\n"), nil); len(mistakes) != 1 || !strings.HasSuffix(mistakes[0].Text, `did you mean "lead"?`) {
		t.Error(mistakes)
	}
}

// Any file is parsed or gives mistakes, and their lines exist.
// A group has each of its members once, and whoever is named often is looked for once.
func TestNamedOften(t *testing.T) {
	text := "[groups]\n"
	for i := range 300 {
		text += fmt.Sprintf("g%d = [%s\"al\"]\n", i, strings.Repeat("\"bob\", ", 20))
	}
	looks := 0
	c, mistakes := Parse([]byte(text), func(n wire.Name) bool { looks++; return n == "bob" || n == "al" })
	if len(mistakes) > 0 || looks > 1000 {
		t.Errorf("%d looks for mailboxes; %v", looks, mistakes)
	}
	if got := c.Groups["g7"]; !slices.Equal(got, []wire.Name{"bob", "al"}) {
		t.Errorf("%d members: %v", len(got), got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(wholeToml))
	for _, s := range []string{"[[rules]]\n[rules.x]\n", "[a]\n[[a]]\n", "a.b=1\n[a]\n", "a={b=1}\na.c=2", "rules=[]\n[[rules]]", "a=[[", "\"\"=1", "[members]\nbob=1", "session=2026-05-01\nlead=1979-05-27T00:00:00Z"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, mistakes := Parse(data, nil)
		for _, m := range mistakes {
			if m.Line < 1 || m.Line > strings.Count(string(data), "\n")+1 || m.Text == "" {
				t.Errorf("%+v", m)
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
