package policy

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// SplitWords splits a command into words as a shell does: blanks separate words,
// quotes and backslashes keep them together. Nothing is expanded.
func SplitWords(line string) (words []string, err error) {
	itself := &expand.Config{Env: expand.FuncEnviron(func(name string) string { return "$" + name })}
	for w, err := range syntax.NewParser().WordsSeq(strings.NewReader(line)) {
		word := ""
		if err == nil {
			word, err = expand.Literal(itself, w)
		}
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, nil
}

// input is what a tool is about to do, as the rules see it.
type input struct {
	text  string   // with runs of blanks made one
	plain bool     // text is everything that will happen: a pattern may allow it
	cut   bool     // there is more than text
	calls []string // every command that stands in it, for patterns that deny
	shell bool
}

func readInput(q Request) input {
	in := input{text: q.Input, calls: []string{q.Input}, shell: q.Command || !TakesNoCommand(q.Tool)}
	in.cut = q.Cut || strings.ContainsRune(q.Input, '…') // which is how programs show that something was cut
	if !in.shell {
		in.plain = !in.cut && q.Input != "" && !hasInvisible(q.Input) && !leadsUpwards(q.Input)
		return in
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(q.Input), "")
	if err != nil {
		return in
	}
	in.calls = nil
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var words []string
			for _, w := range call.Args {
				words = append(words, source(q.Input, w))
			}
			in.calls = append(in.calls, strings.Join(words, " "))
		}
		return true
	})
	if isPlainCall(file, q.Input) && !in.cut {
		in.text, in.plain = in.calls[0], true
	}
	return in
}

// isPlainCall reports whether a command line is one call of a program with words
// that are taken as they are, and nothing else.
func isPlainCall(file *syntax.File, line string) bool {
	// The parser and the shells disagree about a backslash at the end of a line.
	if len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 || hasInvisible(strings.ReplaceAll(line, "\t", " ")) {
		return false
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && source(line, call) == strings.TrimSpace(line) &&
		!slices.ContainsFunc(call.Args, func(w *syntax.Word) bool { return !isLiteral(w) })
}

// isLiteral reports whether a word reaches the program as it stands: no
// expansion of any kind, in any of the usual shells, and no backslash.
func isLiteral(w *syntax.Word) bool {
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			isExpanded := strings.ContainsAny(p.Value, "*?[]{}\\$`") || strings.Contains(p.Value, "=~") || strings.Contains(p.Value, ":~")
			if isExpanded || i == 0 && strings.ContainsAny(p.Value[:min(1, len(p.Value))], "~=") {
				return false
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return false
			}
		case *syntax.DblQuoted:
			isNoLit := func(inner syntax.WordPart) bool { _, ok := inner.(*syntax.Lit); return !ok }
			if p.Dollar || slices.ContainsFunc(p.Parts, isNoLit) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func source(line string, n syntax.Node) string { return line[n.Pos().Offset():n.End().Offset()] }

// includes reports whether a command in the input matches a pattern, as it was
// written or without its quotes and its program's directory.
func (in input) includes(pattern string) bool {
	return slices.ContainsFunc(in.calls, func(call string) bool {
		return glob(pattern, call) || in.shell && glob(pattern, bare(call))
	})
}

// mayInclude reports whether the input may do what a pattern is about, though no command in it matches: behind a
// program that runs another one (sudo, sh -c), or where what will happen cannot be read.
func (in input) mayInclude(pattern string) bool {
	if !in.plain || !in.shell {
		return !in.plain
	}
	const anyWords, moreWords = "(.*[^a-zA-Z0-9])?", "( .*)?"
	text := bare(in.text)
	return matches(anyWords, pattern, moreWords, text) || matches(anyWords, pattern, "", text+" ")
}

func bare(command string) string {
	s := strings.NewReplacer(`\\`, `\`, `\`, "", `'`, "", `"`, "").Replace(command)
	program, _, _ := strings.Cut(s, " ")
	return s[strings.LastIndexByte(program, '/')+1:]
}

// hasInvisible reports whether a text holds what a person does not see as it is:
// line ends, control characters and marks that change the direction of writing.
func hasInvisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.Is(unicode.C, r) || unicode.IsSpace(r) && r != ' ' || r == unicode.ReplacementChar
	})
}

// leadsUpwards reports whether a path has a "..": then its beginning says nothing about where it leads.
func leadsUpwards(path string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// TakesNoCommand reports whether a tool of a known agent takes a path, an
// address or words to look for. The input of any other tool may be a command.
func TakesNoCommand(tool string) bool {
	switch strings.ToLower(strings.ReplaceAll(tool, "_", "")) {
	case "read", "edit", "write", "multiedit", "notebookedit", "notebookread", "glob", "grep", "ls", "list", "webfetch", "websearch",
		"readfile", "readmanyfiles", "writefile", "replace", "findfiles", "searchtext", "googlesearch", "applypatch", "patch", "todowrite",
		"search", "fetch", "delete", "move", "think", "switchmode":
		return true
	}
	return false
}

// Quote makes one word of a text for a shell, as a command in a hint needs it.
func Quote(word string) string {
	if quoted, err := syntax.Quote(word, syntax.LangBash); err == nil {
		return quoted
	}
	return word // a NUL: no shell takes it
}
