package teams

import (
	"errors"
	"strings"
)

// script is a command line of a shell, taken apart as far as that can be done
// without running it.
type script struct {
	// Parts are the commands between ; & | && || and line ends, with runs of
	// blanks outside of quotes made one.
	parts []string

	// Opaque says that more is done than the parts tell: something is put in
	// where it runs ($(…), `…`, <(…)), read from or written to a file, grouped,
	// or quoted so that it cannot be told where it ends.
	opaque bool
}

// readScript takes a command line apart. What is not understood makes it
// opaque, never shorter.
func readScript(s string) script {
	var out script
	var part strings.Builder
	end := func() {
		if p := strings.TrimRight(part.String(), " "); p != "" {
			out.parts = append(out.parts, p)
		}
		part.Reset()
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				out.opaque = true
				n = len(s) - i - 2
			}
			part.WriteString(s[i : i+n+2])
			i += n + 1
		case c == '"':
			n, opaque := doubleQuoted(s[i:])
			out.opaque = out.opaque || opaque
			part.WriteString(s[i : i+n])
			i += n - 1
		case c == '\\':
			if i+1 >= len(s) || s[i+1] == '\n' || s[i+1] == '\r' {
				out.opaque = true // joined with what follows
			}
			part.WriteByte(c)
			if i+1 < len(s) {
				i++
				part.WriteByte(s[i])
			}
		case c == ';' || c == '\n' || c == '|':
			end()
		case c == '&' && i+1 < len(s) && s[i+1] == '>':
			if n := harmless(s[i:]); n > 0 {
				i += n - 1
				continue
			}
			out.opaque = true
			part.WriteByte(c)
		case c == '&':
			end()
		case c == '>' || c >= '0' && c <= '9' && i+1 < len(s) && s[i+1] == '>' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			if n := harmless(s[i:]); n > 0 {
				i += n - 1
				continue
			}
			out.opaque = true
			part.WriteByte(c)
		case c == '<' || c == '(' || c == ')' || c == '`':
			out.opaque = true
			part.WriteByte(c)
		case c == '$' && i+1 < len(s) && strings.IndexByte("({['\"", s[i+1]) >= 0:
			out.opaque = true
			part.WriteByte(c)
		case c == ' ' || c == '\t':
			if p := part.String(); p != "" && !strings.HasSuffix(p, " ") {
				part.WriteByte(' ')
			}
		default:
			part.WriteByte(c)
		}
	}
	end()
	if unseen(s) {
		out.opaque = true
	}
	return out
}

// doubleQuoted is the length of what stands between double quotes, with them,
// and whether a shell puts something in.
func doubleQuoted(s string) (n int, opaque bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1, opaque
		case '\\':
			i++
		case '`':
			opaque = true
		case '$':
			if i+1 < len(s) && strings.IndexByte("({[", s[i+1]) >= 0 {
				opaque = true
			}
		}
	}
	return len(s), true // it never ends
}

// harmless is the length of a redirection that writes no file, 0 for any other.
func harmless(s string) int {
	for _, r := range []string{"2>&1", "1>&2", ">&2", "2>/dev/null", "1>/dev/null", "&>/dev/null", ">/dev/null"} {
		if !strings.HasPrefix(s, r) {
			continue
		}
		if rest := s[len(r):]; rest == "" || strings.IndexByte(" \t\n;&|", rest[0]) >= 0 {
			return len(r)
		}
	}
	return 0
}

// unseen reports whether a text holds what a person does not see as it is:
// controls, and marks that turn the direction of writing.
func unseen(s string) bool {
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r < ' ', r >= 0x7f && r <= 0x9f, r == 0xfffd, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
			return true
		}
	}
	return false
}

// bare is a command as its words say it: quotes and backslashes gone, and
// without the directory of its program.
func bare(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch c := part[i]; {
		case c == '\'' || c == '"':
		case c == '\\' && i+1 < len(part):
			i++
			b.WriteByte(part[i])
		default:
			b.WriteByte(c)
		}
	}
	s := b.String()
	word, _, _ := strings.Cut(s, " ")
	if n := strings.LastIndexByte(word, '/'); n >= 0 && n+1 < len(word) {
		s = s[n+1:]
	}
	return s
}

// program is the name of the program that a command runs.
func program(part string) string {
	word, _, _ := strings.Cut(bare(part), " ")
	return word
}

// wraps reports whether a program's arguments may be a command that it runs, or
// its name is a word of the shell before which or behind which one stands.
func wraps(name string) bool {
	switch name {
	case "sudo", "doas", "su", "env", "command", "builtin", "exec", "nohup", "nice", "ionice", "time", "timeout", "busybox", "find", "fd",
		"ssh", "watch", "setsid", "stdbuf", "strace", "script", "unshare", "chroot", "docker", "podman", "npx", "coproc", "alias", "trap",
		"if", "then", "else", "elif", "while", "until", "for", "do", "case", "function", "!", "{", "in":
		return true
	}
	return blind(name)
}

// blind reports whether what a program will do cannot be read in a command of
// it: it takes commands from elsewhere, or its name is put together first.
func blind(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "eval", "source", ".", "xargs", "parallel", "":
		return true
	}
	return strings.ContainsAny(name, "$*?[{=~")
}

// fragments are all texts in a command line that may be commands wherever they
// stand, also inside of quotes and of what is put in.
func fragments(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(";&|\n\r(){}<>`$!\"'", r) })
}

// suffixes calls f with a command from each of its words on, until it says yes.
func suffixes(part string, f func(string) bool) bool {
	for s := strings.TrimSpace(part); s != ""; {
		if f(s) {
			return true
		}
		_, rest, ok := strings.Cut(s, " ")
		if !ok {
			return false
		}
		s = strings.TrimLeft(rest, " ")
	}
	return false
}

// splitWords splits a command into words as a shell does, without anything put
// in: blanks part them, quotes and backslashes keep them together.
func splitWords(s string) (words []string, err error) {
	var word strings.Builder
	in := false // a word has begun
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		case '\'', '"':
			in = true
			for i++; ; i++ {
				if i >= len(s) {
					return nil, errors.New("a quote is not closed")
				}
				if s[i] == c {
					break
				}
				if s[i] == '\\' && c == '"' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
					i++
				}
				word.WriteByte(s[i])
			}
		case '\\':
			if i++; i >= len(s) {
				return nil, errors.New("it ends with a backslash")
			}
			in = true
			word.WriteByte(s[i])
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
