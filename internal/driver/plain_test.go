package driver

import (
	"testing"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/reducer"
)

// A question may end like a prompt, and a prompt may contain words of a question.
func TestQuestions(t *testing.T) {
	for line, isQuestion := range map[string]bool{
		"Really delete? > ": true, "Overwrite file? [y/N] $ ": true, "Type 'yes' to confirm > ": true, "PIN> ": true, "Password> ": true,
		"OTP code> ": true, "Enter token # ": true, "Wirklich loeschen (j/n) > ": true, "Continue? $ ": true, "all 5 files (yes/no) # ": true,
		"bob@host:~/token $ ": false, "~/pin> ": false, "$ ": false, "(main) [?] $ ": false,
	} {
		s := screen.New(80, 24, 0)
		s.Write([]byte(line))
		d, _ := Named("plain")
		r := d.Read(LookAt(s), Reading{})
		if (r.Activity == reducer.AwaitingInput) != isQuestion || r.Prompt == isQuestion {
			t.Errorf("%q: %s, a prompt: %v", line, r.Activity, r.Prompt)
		}
	}
}

// The output of bash 5.2, Python 3.11 and 3.13, dash and node in order; each step is read with the previous reading.
func TestPlain(t *testing.T) {
	type step struct {
		out        string
		activity   reducer.Activity
		why        control.Gate
		draft      string
		foreground string
	}
	const idle, tool, asks, starting, thinking = reducer.Idle, reducer.ToolRunning, reducer.AwaitingInput, reducer.Starting, reducer.Thinking
	for name, steps := range map[string][]step{
		"bash": {
			{"", starting, "no prompt on the screen", "", ""},
			{"\x1b[?2004h", starting, "no prompt on the screen", "", ""},
			{"bash-5.2# ", idle, "", "", ""},
			{"echo hi", idle, "draft", "echo hi", ""},
			{"\r\n\x1b[?2004l\r", tool, "a command is running", "", ""},
			{"hi $ ", tool, "a command is running", "", ""},
			{"\r\n\x1b[?2004hbash-5.2# ", idle, "", "", ""},
			{"read\r\n\x1b[?2004l\rGo on? [y/N] ", asks, "dialog", "", ""},
			{"n\r\n\x1b[?2004hbash-5.2# echo 'a\r\n\x1b[?2004l\r\x1b[?2004h> ", thinking, "busy", "", ""},
			{"b'\r\n\x1b[?2004l\ra\r\nb\r\n\x1b[?2004hbash-5.2# ", idle, "", "", ""},
			{"vi\r\n\x1b[?2004l\r\x1b[?1049h\x1b[?2004h$ ", tool, "a full-screen program is running", "", "vi"},
			{"\x1b[?2004l\x1b[?1049l\x1b[?2004hbash-5.2# ", idle, "", "", ""},
			{"python3\r\n\x1b[?2004l\r\x1b[?2004h>>> ", tool, "a command is running", "", "python3"},
			{"sudo x\r\n\x1b[?2004l\r[sudo] password for bob: ", asks, "dialog", "", "sudo"},
		},
		"a prompt of two rows, and one at the right": {
			{"\x1b[?2004h\x1b[32m~/proj main\x1b[m\r\n❯ ", idle, "", "", ""},
			{"\x1b7\x1b[40C12:30\x1b8", idle, "", "", ""},
			{"ls", idle, "draft", "ls", ""},
		},
		"a suggestion in grey and dim": {
			{"\x1b[?2004hbob@host ~> \x1b[2mls -l\x1b[m\x1b[5D", idle, "", "", ""},
		},
		"a prompt of its own": {
			{"\x1b[?2004h[proj] => ", idle, "", "", ""},
			{"l", idle, "draft", "l", ""},
			{"\x08\x1b[K", idle, "", "", ""},
		},
		"prompts of oh-my-zsh": {
			{"\x1b[?2004h➜  proj ", idle, "", "", ""},
			{"make", idle, "draft", "make", ""},
			{"\r\n\x1b[?2004l\r", tool, "a command is running", "", ""},
			{"\r\n\x1b[?2004h➜  proj git:(main) ✗ ", idle, "", "", ""},
			{"zsh\r\n\x1b[?2004l\r", tool, "a command is running", "", ""},
			{"\x1b[?2004hλ ~/proj ", idle, "", "", ""},
		},
		"wide characters in the prompt": {
			{"\x1b[?2004h项目 $ ", idle, "", "", ""},
			{"echo 你好", idle, "draft", "echo 你好", ""},
		},
		"a command longer than the row": {
			{"\x1b[?2004h\x1b]0;x\abob$ ", idle, "", "", ""},
			{"echo 0123456789012345678901234567890123456789012345678901234567 5$ ", idle, "draft", "echo 0123456789012345678901234567890123456789012345678901234567 5$", ""},
		},
		"python3": {
			{"Python 3.11.7\r\nType \"help\", \"copyright\", \"credits\" or \"license\" for more information.\r\n", starting, "no prompt on the screen", "", ""},
			{">>> ", idle, "", "", ""},
			{"if 1:\r\n... ", thinking, "busy", "", ""},
			{"\r\n>>> while 1: pass\r\n", thinking, "no prompt on the screen", "", ""},
			{"Traceback\r\nKeyboardInterrupt\r\n>>> ", idle, "", "", ""},
		},
		"python3.13": {
			{"\x1b[?2004h\x1b[?1h\x1b=\x1b[1G\x1b[35m>>> \x1b[0m\x1b[5G", idle, "", "", ""},
			{"1\r\n\x1b[?2004l\r", tool, "a command is running", "", ""},
			{"1\r\n\x1b[?2004h>>> ", idle, "", "", ""},
		},
		"dash": {
			{"# ", idle, "", "", ""},
			{"sleep 9", idle, "draft", "sleep 9", ""},
			{"\r\n", tool, "a command is running", "", "sleep"},
			{"# ", idle, "", "", ""},
		},
		"node": {
			{"Welcome to Node.js v20.20.2.\r\nType \".help\" for more information.\r\n\x1b[1G\x1b[0J> \x1b[3G", idle, "", "", ""},
		},
		"top": {
			{"\x1b[2J\x1b[Htop - 12:30\r\nTasks: 143 total\x1b[H", starting, "no prompt on the screen", "", ""},
		},
		"less": {
			{"\x1b[?1049h\x1b[2Jtext\r\n:", tool, "a full-screen program is running", "", ""},
		},
	} {
		s := screen.New(60, 12, 100)
		d := ForCommand([]string{name})
		if d.Unknown { // it runs in a shell
			d, _ = Named("plain")
		}
		var r Reading
		for i, st := range steps {
			s.Write([]byte(st.out))
			l := LookAt(s)
			l.Foreground = st.foreground
			r = d.Read(l, r)
			if r.Activity != st.activity || r.NotPromptReason != st.why || r.Draft != st.draft || r.Prompt != (st.why == "") {
				t.Errorf("%s, step %d, after %q: %s, prompt %v, why %q, draft %q", name, i, st.out, r.Activity, r.Prompt, r.NotPromptReason, r.Draft)
			}
		}
	}
}

// Nothing on the screen of a program that nobody has described is evidence, not even what looks like a prompt.
func TestUnknown(t *testing.T) {
	for _, c := range []struct {
		out      string
		activity reducer.Activity
		detail   string
		why      control.Gate
	}{
		{"", reducer.Unknown, "", control.GateUnknown},
		{"\x1b[?2004h", reducer.Unknown, "", control.GateUnknown},
		{"\x1b[?2004h? May I run: rm -rf build\r\n\r\n    No\r\n    Yes\r\n\r\n Choose n/y/a (a = always) ❯ ", reducer.Unknown, "", control.GateUnknown},
		{"$ ", reducer.Unknown, "", control.GateUnknown},
		{"Password: ", reducer.Unknown, "", control.GateUnknown},
		{"\x1b[?1049h\x1b[2Jtext", reducer.Unknown, "", control.GateUnknown},
		{"$ \x1b]7501;state=idle:app=x\a", reducer.Idle, "", control.GateUnknown},
		{"\x1b]7501;state=working:app=x\a", reducer.Thinking, "", control.GateUnknown},
		{"$ \x1b]7501;state=blocked:app=x:kind=permission\a", reducer.Confirming, "permission", control.GateUnknown},
		{"$ \x1b]7501;state=blocked:app=x\a", reducer.Confirming, "unknown", control.GateUnknown},
	} {
		s := screen.New(80, 24, 0)
		s.Write([]byte(c.out))
		r := ForCommand([]string{"gnusto"}).Read(LookAt(s), Reading{})
		if r.Activity != c.activity || r.Detail != c.detail || r.NotPromptReason != c.why || r.Prompt || r.Dialog != nil {
			t.Errorf("%q: %+v", c.out, r)
		}
	}
}

// The rest of a command, and what a command asks, is no prompt.
func TestRestOfACommand(t *testing.T) {
	for name, c := range map[string][]string{
		"psql":         {"postgres=# ", "select 1\r\npostgres-# "},
		"psql (":       {"shop=> ", "select (1\r\nshop(> "},
		"psql '":       {"shop=> ", "select 'a\r\nshop'> "},
		"lua":          {"> ", "for i=1,2 do\r\n>> "},
		"iex":          {"iex(1)> ", "[1,\r\n...(1)> "},
		"zsh nested":   {"\x1b[?2004hhost% ", "if true; then echo 'a\x1b[?2004l\r\r\n\x1b[?2004hthen quote> "},
		"zsh cond":     {"\x1b[?2004hhost% ", "[[ a\x1b[?2004l\r\r\n\x1b[?2004hcond> "},
		"zsh {":        {"\x1b[?2004hhost% ", "{\x1b[?2004l\r\r\n\x1b[?2004hcursh> "},
		"psql, edited": {"\x1b[?2004hpostgres=# ", "select 1\x1b[?2004l\r\r\n\x1b[?2004hpostgres-# "},
		"sqlite (":     {"sqlite> ", "select (\r\n(x1...> "},
		"python input": {">>> ", "x = input('name> ')\r\nname> "},
		"dash read":    {"$ ", "printf 'Name> '; read x\r\nName> "},
		"node more":    {"> ", "f(\r\n... "},
		"mysql":        {"mysql> ", "select 1\r\n    -> "},
		"bash":         {"$ ", "echo 'a\r\n> "},
	} {
		s := screen.New(80, 24, 0)
		d, _ := Named("plain")
		var r Reading
		for _, out := range c {
			s.Write([]byte(out))
			r = d.Read(LookAt(s), r)
		}
		if r.Prompt {
			t.Errorf("%s: at its prompt", name)
		}
	}
}

// A shell with line editing may change its prompt.
func TestAnotherPrompt(t *testing.T) {
	s, r, plain := screen.New(80, 24, 0), Reading{}, builtIn("plain")
	for _, out := range []string{"\x1b[?2004hbash-5.2# ", "PS1='$ '\r\n\x1b[?2004l\r\x1b[?2004h$ "} {
		s.Write([]byte(out))
		if r = plain.Read(LookAt(s), r); !r.Prompt {
			t.Errorf("after %q: %s", out, describe(r))
		}
	}
}
