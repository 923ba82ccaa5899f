package install

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// command is what a tool's hooks run, as words. The program is named by its
// absolute path, as PATH finds it, so that a link there goes on working when
// what it leads to changes: programs that are started from a desktop, or that
// run hooks in a login shell, look along other directories than this one does.
func (p *Place) command(tool, agent string) []string {
	program := p.onPath()
	if program == "" {
		program = p.Self
	}
	words := []string{filepath.ToSlash(program), "hook", tool}
	if agent != "" {
		words = append(words, "--as", agent)
	}
	return words
}

// onPath is where PATH finds this program under the name atm, "" where it finds
// another one or none. A relative entry does not count: agents are elsewhere.
func (p *Place) onPath() string {
	self, err := os.Stat(p.Self)
	if err != nil {
		return ""
	}
	name := "atm"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(p.getenv("PATH")) {
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		if !filepath.IsAbs(dir) || err != nil || !fi.Mode().IsRegular() || runtime.GOOS != "windows" && fi.Mode()&0o111 == 0 {
			continue
		}
		if os.SameFile(fi, self) {
			return path
		}
		break
	}
	return ""
}

// pathNote says that agents will not find atm, where that is so.
func (p *Place) pathNote(pl *plan) {
	if p.onPath() == "" {
		pl.notes = append(pl.notes, "no directory on your PATH has this program as atm: the hooks run "+p.Self+", but agents will type atm; link it into one")
	}
}

// shellLine is words as a line for a shell.
func shellLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+@%:=-") != "" || w == "" {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// shellWords takes a simple shell line apart. ok is false where that would take
// a shell.
func shellWords(line string) (words []string, ok bool) {
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, b.String())
				b.Reset()
			}
			in = false
		case quote == 0 && (c == '\'' || c == '"'):
			in, quote = true, c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			in = true
			b.WriteByte(line[i])
		case quote == 0 && strings.IndexByte("|&;<>()$`\n*?[#~", c) >= 0, quote == '"' && (c == '$' || c == '`'):
			return nil, false
		default:
			in = true
			b.WriteByte(c)
		}
	}
	if in {
		words = append(words, b.String())
	}
	return words, quote == 0
}

// whose says of a hook's command what it is to us.
type whose int

const (
	foreign  whose = iota
	adjusted       // somebody wrote it who wants atm called in their way: left alone, and enough
	mine           // as this package writes it, now or earlier
)

// judge looks at a hook's command.
func judge(line string, args []string, tool string) whose {
	words, ok := shellWords(line)
	words = append(words, args...)
	call := []string{"hook", tool}
	if !ok {
		if strings.Contains(line, "atm") && strings.Contains(line, strings.Join(call, " ")) {
			return adjusted
		}
		return foreign
	}
	i := slices.IndexFunc(words, isAtm)
	j := slices.Index(words, "hook")
	if i < 0 || j < i || j+1 >= len(words) || words[j+1] != tool {
		return foreign
	}
	rest := words[j+2:]
	if i == 0 && j == 1 && (len(rest) == 0 || len(rest) == 2 && rest[0] == "--as") {
		return mine
	}
	return adjusted
}

func isAtm(word string) bool {
	word = word[strings.LastIndexAny(word, `/\`)+1:]
	return strings.TrimSuffix(word, ".exe") == "atm"
}

// agentOf is who the hooks of a worktree speak for: who is asked for, else who
// they spoke for before.
func agentOf(r Request, before [][]string) string {
	if r.Local && r.Agent == "" {
		for _, words := range before {
			if len(words) == 5 && words[3] == "--as" {
				return words[4]
			}
		}
	}
	return r.Agent
}
