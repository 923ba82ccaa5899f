package policy

import (
	"runtime"
	"strings"
	"testing"
)

// rulesOf parses rules like "allow Bash(git *)".
func rulesOf(lines ...string) (rs Rules) {
	for _, l := range lines {
		decision, tool, _ := strings.Cut(l, " ")
		rs = append(rs, Rule{Decision: Decision(decision), Tool: tool})
	}
	return rs
}

// A pattern allows only one plain call.
func TestAllow(t *testing.T) {
	t.Parallel()
	git := rulesOf("allow Bash(git *)")
	for _, c := range []struct {
		input string
		want  Decision
	}{
		{"git status", Allow},
		{"git stat…", Ask},
		{"  git   status\t-s ", Allow},
		{"git", Ask},
		{"gitk --all", Ask},
		{"git status && git log", Ask},
		{"git status; git log | git apply &\ngit diff", Ask},
		{"git commit -m 'a; b && $(c) `d` > e'", Allow},
		{`git commit -m "a; b | c"`, Allow},
		{`git commit -m "it's \"fine\""`, Allow},
		{"git log --format='%H'", Allow},
		{"git log --format='%H'\ngit show", Ask},
		{`git grep a\;b`, Ask},
		{"git log 2>&1", Ask},
		{"git log 2>/dev/null | git apply", Ask},
		{"git log >/dev/null 2>&1", Ask},
		{"git log $BRANCH", Ask},
		{"git status # and so on", Ask},

		{"", Ask},
		{"git status; rm -rf x", Ask},
		{"git status;rm -rf x", Ask},
		{"git status && rm -rf x", Ask},
		{"git status || rm -rf x", Ask},
		{"git status | sh", Ask},
		{"git status |& sh", Ask},
		{"git status & rm -rf x", Ask},
		{"git status &rm -rf x", Ask},
		{"git status\nrm -rf x", Ask},
		{"git status\r\nrm -rf x", Ask},
		{"git status\rrm -rf x", Ask},
		{"git status # a\nrm -rf x", Ask},
		{"git status # it's", Ask},
		{"git $(rm -rf x)", Ask},
		{"git `rm -rf x`", Ask},
		{`git "$(rm -rf x)"`, Ask},
		{"git \"`rm -rf x`\"", Ask},
		{"git ${x:-$(rm)}", Ask},
		{`git "${x}"`, Ask},
		{"git $((1+a[$(rm)]))", Ask},
		{"git $[1]", Ask},
		{`git $'a\'; rm -rf x #'`, Ask},
		{`git $"a"`, Ask},
		{"git diff <(rm -rf x)", Ask},
		{"git log >(sh)", Ask},
		{"git log > ~/.bashrc", Ask},
		{"git log >> ~/.bashrc", Ask},
		{"git log 1> ~/.bashrc", Ask},
		{"git log &> x", Ask},
		{"git log >& x", Ask},
		{"git log >/dev/nullx", Ask},
		{"git log 2>&1x", Ask},
		{"git log >| x", Ask},
		{"git apply < x", Ask},
		{"git apply <<E\nx\nE", Ask},
		{"git sta\\\ntus", Ask},
		{`git status \`, Ask},
		{"git 'status", Ask},
		{`git "status`, Ask},
		{"(git status)", Ask},
		{"git status; (rm x)", Ask},
		{"{ git status; }", Ask},
		{"if git status; then rm x; fi", Ask},
		{"GIT_PAGER='rm x' git log", Ask},
		{"/tmp/git status", Ask},
		{"g\\it status", Ask},
		{"git status\x1b[2K", Ask},
		{"git status \u202etxt", Ask},
		{"git\u00a0log", Ask},
		{"git log --format=%h\nrm -rf /home", Ask},
		{"git status\x00rm", Ask},
		{"git \xff", Ask},
		{"git status ;; rm", Ask},
		{"git status'';rm", Ask},
		{"git ''~", Ask},
		{"git a=~/b", Ask},
		{"git a:~/b", Ask},
		{"git \ufffd", Ask},
		{`git ""=rm`, Ask},
		{"git 'a\\' '; rm x #'", Ask}, // in fish the second quote ends the first word
		{"git 'a'\\'';rm", Ask},       // either the quote never ends or rm runs
	} {
		if got := git.Decide(Request{Tool: "Bash", Input: c.input}); got != c.want {
			t.Errorf("%q: %s, not %s", c.input, got, c.want)
		}
	}
	if got := rulesOf("allow *").Decide(Request{Tool: "Bash", Input: "x…"}); got != Ask {
		t.Error("what was cut is allowed")
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules       string // one per line
		tool, input string
		want        Decision
	}{
		{"", "Bash", "ls", Ask},
		{"allow Bash", "Bash", "ls > x; $(y)", Allow},
		{"allow bash", "Bash", "ls", Allow},
		{"allow Bash", "BashOutput", "ls", Ask},
		{"allow *", "Anything", "", Allow},
		{"allow *", "", "ls", Ask},
		{"deny *", "", "ls", Deny},
		{"deny Bash\nallow *", "", "ls", Ask},
		{"allow mcp__github__*", "mcp__github__search", "{}", Allow},
		{"allow mcp__github__*", "mcp__gitlab__search", "{}", Ask},
		{"deny Bash\nallow Bash", "Bash", "ls", Deny},
		{"allow Bash\ndeny Bash", "Bash", "ls", Allow},
		{"ask Bash(git push*)\nallow Bash(git *)", "Bash", "git push -f", Ask},
		{"ask Bash(git push*)\nallow Bash(git *)", "Bash", "git pull", Allow},
		{"ask Bash(git push*)\nallow Bash(git *)", "Bash", "git pull && git push", Ask},

		// A pattern never allows several commands; one that is denied denies the line.
		{"allow Bash(git *)\nallow Bash(ls *)", "Bash", "git status && ls -l", Ask},
		{"allow Bash(git *)\ndeny Bash(rm *)", "Bash", "git status; rm x", Deny},
		{"allow Bash(git *)\ndeny *", "Bash", "git status; rm x", Deny},
		{"deny Bash(rm *)", "Bash", "ls | rm x", Deny},

		// Patterns that deny see through quotes and paths.
		{"deny Bash(rm *)", "Bash", "/bin/rm -rf x", Deny},
		{"deny Bash(rm *)", "Bash", `r\m -rf x`, Deny},
		{"deny Bash(rm *)", "Bash", `"rm" -rf x`, Deny},
		{"deny Bash(rm *)", "Bash", `r''m -rf x`, Deny},
		{"deny Bash(rm *)", "Bash", "git rm x", Ask},

		// No later rule allows what they may have missed.
		{"deny Bash(rm *)\nallow Bash", "Bash", "ls", Allow},
		{"deny Bash(rm *)\nallow Bash", "Bash", "make test", Allow},
		{"deny Bash(rm *)\nallow Bash(git *)", "Bash", "git rm x", Ask},
		{"deny Bash(rm *)\nallow Bash(git *)", "Bash", "git commit -m 'perform'", Allow},
		{"deny Bash(rm *)\nallow Bash", "Bash", "sudo rm -rf x", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "sh -c 'rm -rf x'", Ask},
		{"deny Bash(rm *)\nallow Bash(sh *)", "Bash", "sh -c 'cd x; rm -rf x'", Ask},
		{"deny Bash(rm *)\nallow Bash(sh *)", "Bash", "sh test.sh", Allow},
		{"deny Bash(rm *)\nallow Bash", "Bash", "echo cm0gLXJmIHg= | base64 -d | sh", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "echo x | xargs rm", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "find . -exec rm {} +", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "find . -exec ls {} +", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "$X -rf x", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "/bin/r? -rf x", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "A=rm; $A x", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "echo $(rm x)", Deny},
		{"deny Bash(rm *)\nallow Bash", "Bash", "cat > x", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "", Ask},
		{"deny Bash(rm *)\nallow Bash", "Bash", "for f in *; do rm $f; done", Deny},
		{"deny Bash(rm *)\nallow *", "Edit", "a.go", Allow},
		{"deny Bash(rm *)\nallow Bash", "Bash", "sudo RM x", Ask}, // macOS runs rm
		{"deny Bash(rm *)\nallow Bash", "Bash", "xargs rm", Ask},
		{"deny Bash(rm *)\ndeny Bash(dd *)\nallow Bash", "Bash", "sudo rm x", Ask},
		{"deny Bash(rm *)\ndeny Edit\nallow Bash", "Bash", "sudo rm x", Ask},

		// Paths.
		{"allow Edit(src/*)", "Edit", "src/a b.go", Allow},
		{"allow Edit(src/*)", "Edit", "src/a;b&c.go", Allow},
		{"allow Edit(src/*)", "Edit", "src/../x", Ask},
		{"allow Edit(src/*)", "Edit", "src/..", Ask},
		{"allow Edit(src/*)", "Edit", `src\..\x`, Ask},
		{"allow Edit(src/*)", "Edit", "src/a\nb", Ask},
		{"allow Edit(src/*)", "Edit", "/src/a", Ask},
		{"deny Edit(*.env)\nallow Edit", "Edit", "x/.env", Deny},
		{"deny Edit(/etc/*)\nallow Edit", "Edit", "/x/../etc/passwd", Ask},
		{"deny Edit(/etc/passwd)\nallow Edit", "Edit", "/etc/./passwd", Ask},
		{"deny Edit(/etc/passwd)\nallow Edit", "Edit", "/etc//passwd", Ask},
		{"deny Edit(/etc/passwd)\nallow Edit", "Edit", "/etc/x.passwd", Allow},
		{"deny Edit(*.env)\nallow Edit", "Edit", "x/.ENV", Ask},
		{"allow Glob(*)", "Glob", ".", Allow},
		{"allow Edit(*)", "Edit", "", Ask},
		{"allow WebFetch(https://go.dev/*)", "WebFetch", "https://go.dev/x?a=1&b=2", Allow},

		// An unknown tool may take a command.
		{"allow runner(git *)", "runner", "git status; rm x", Ask},
	} {
		var rs Rules
		if c.rules != "" {
			rs = rulesOf(strings.Split(c.rules, "\n")...)
		}
		if got := rs.Decide(Request{Tool: c.tool, Input: c.input}); got != c.want {
			t.Errorf("%q, %s(%s): %s, not %s", c.rules, c.tool, c.input, got, c.want)
		}
	}
}

// However a path is written, a deny rule meets it; no allow rule is wider for that.
func TestPathForms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("agents are run elsewhere")
	}
	for _, c := range []struct {
		rules, tool, input string
		want               Decision
	}{
		{"deny Edit(.git/*)\nallow Edit", "Edit", ".git/config", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "/home/me/app/.git/config", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "/real/app/.git/hooks/post-checkout", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "./.git/config", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "src/../.git/config", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "/home/me/app/src/..//.git/./config", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "../app/.git/config", Deny},
		{"deny Edit(./.git/*)\nallow Edit", "Edit", ".git/config", Deny},
		{"deny Edit(/home/me/app/.git/*)\nallow Edit", "Edit", ".git/config", Deny},
		{"deny Edit(../*)\nallow Edit", "Edit", "/home/me/x", Deny},
		{"deny Edit(/etc/*)\nallow Edit", "Edit", "/x/../etc/passwd", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "/home/me/other/.git/config", Allow},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "src/a b.go", Allow},
		{"ask Edit(.git/*)\nallow Edit", "Edit", "/home/me/app/.git/config", Ask},
		{"deny Read(.env)\nallow Read", "Read", "/home/me/app/.env", Deny},
		{"deny Edit(.git/*)\nallow Edit", "Edit", "/an other/app/.git/config", Deny},
		{"deny Bash(rm .git/*)\nallow Bash", "Bash", "rm '/an other/app/.git/x'", Deny},
		{"deny Bash(rm .git/*)\nallow Bash", "Bash", "/bin/rm ./.git/x", Deny},
		{"deny Bash(rm .git/*)\nallow Bash", "Bash", "rm /home/me/app/.git/x", Deny},
		{"deny Bash(cat .env)\nallow Bash", "Bash", "cat ./.env", Deny},
		{"deny Bash(rm -rf .git)\nallow Bash", "Bash", "'rm' -rf ./src/../.git/", Deny},
		{"deny WebFetch(https://x/*)\nallow WebFetch", "WebFetch", "https://x/y", Deny},

		{"allow Edit(src/*)", "Edit", "/home/me/app/src/a.go", Ask},
		{"allow Edit(src/*)", "Edit", "./src/a.go", Ask},
		{"allow Edit(src/*)", "Edit", "x/../src/a.go", Ask},
		{"allow Bash(cat src/*)", "Bash", "cat /home/me/app/src/a.go", Ask},
	} {
		q := Request{Tool: c.tool, Input: c.input, Dirs: []string{"/home/me/app", "/real/app", "/an other/app"}}
		if got := rulesOf(strings.Split(c.rules, "\n")...).Decide(q); got != c.want {
			t.Errorf("%q, %s(%s): %s, not %s", c.rules, c.tool, c.input, got, c.want)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a\nb", true}, {"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true},
		{"*b", "ab", true}, {"a*b", "ab", true}, {"a*a", "a", false}, {"a*b*c", "axxbyyc", true}, {"a*b*c", "axxcyyb", false},
		{"**", "a", true}, {"*a*", "bab", true}, {"*ab*ab", "ab", false}, {"*.go", "a.go.txt", false}, {"a?", "ab", false}, {"a**b", "ab", true},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.s, got)
		}
	}
}

// No line makes a pattern allow a second command.
func FuzzAllow(f *testing.F) {
	for _, s := range []string{"", "'", `"`, `\`, "$", "$(", "${", "2>&1", ">/dev/null", "'a'", `"a"`, `$'`, "#", "a\\'", `"\"`} {
		f.Add(s)
	}
	rules := rulesOf("allow Bash(git *)")
	f.Fuzz(func(t *testing.T, s string) {
		for _, line := range []string{"git " + s, "git " + s + " x"} {
			if rules.Decide(Request{Tool: "Bash", Input: line}) != Allow {
				continue
			}
			// An allowed line ends outside quotes, so that a command after it is seen.
			for _, behind := range []string{"\nrm x", ";rm x", "&&rm x", "|rm x"} {
				if got := rules.Decide(Request{Tool: "Bash", Input: line + behind}); got == Allow {
					t.Errorf("%q is allowed", line+behind)
				}
			}
		}
	})
}

// A command under the name of a tool that takes none can be denied by either name, but not allowed.
func TestCommandOfAnotherTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules, tool, alias string // rules: one per line
		want               Decision
	}{
		{"deny delete", "delete", "Erase", Deny},
		{"deny Erase(rm *)", "delete", "Erase", Deny},
		{"allow delete", "delete", "Erase", Ask},
		{"allow Erase", "delete", "Erase", Ask},
		{"allow *", "delete", "", Ask},
		{"deny Search(rm *)", "execute", "Search", Deny},
		{"ask Search\ndeny execute(rm *)", "execute", "Search", Deny},
		{"allow Search", "execute", "Search", Ask},
		{"ask Search\nallow execute", "execute", "Search", Ask},
		{"allow execute", "execute", "Search", Allow},
	} {
		q := Request{Tool: c.tool, Alias: c.alias, Command: true, Input: "ls; rm x"}
		if got := rulesOf(strings.Split(c.rules, "\n")...).Decide(q); got != c.want {
			t.Errorf("%q, %s|%s: %s, not %s", c.rules, c.tool, c.alias, got, c.want)
		}
	}
}
