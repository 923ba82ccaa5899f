package policy

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// SplitWords splits a command into words and removes quotes, as a shell does. It expands nothing.
func SplitWords(line string) (words []string, err error) {
	for w, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).WordsSeq(strings.NewReader(line)) {
		word := ""
		if err == nil {
			word, err = plainText(line, w.Parts, false)
		}
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, nil
}

// plainText returns the parts of a word without their quotes. It is an error if the word is made by a command.
func plainText(line string, parts []syntax.WordPart, inQuotes bool) (text string, err error) {
	for _, part := range parts {
		one := ""
		switch p := part.(type) {
		case *syntax.Lit:
			one = unescaped(p.Value, inQuotes)
		case *syntax.SglQuoted:
			one = p.Value
		case *syntax.DblQuoted:
			one, err = plainText(line, p.Parts, true)
		case *syntax.ParamExp:
			one = source(line, p)
		default:
			err = fmt.Errorf("%s is for a shell", source(line, p))
		}
		if err != nil {
			return "", err
		}
		text += one
	}
	return text, nil
}

// unescaped removes the backslashes that a shell removes: in double quotes only some.
func unescaped(s string, inQuotes bool) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!inQuotes || strings.ContainsRune("\"\\$`", rune(s[i+1]))) {
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// input is a parsed Request.Input.
type input struct {
	text    string   // in a plain call single blanks separate the words
	isPlain bool     // text is all that will happen: a pattern may allow it
	isCut   bool     // text is incomplete
	calls   []string // every command in it, for patterns that deny
	isShell bool     // text may be a command
}

func parseInput(q Request) input {
	in := input{text: q.Input, calls: []string{q.Input}, isShell: q.Command || !TakesNoCommand(q.Tool)}
	in.isCut = strings.ContainsRune(q.Input, '…') // programs mark shortened text with it
	if !in.isShell {
		in.calls = append(in.calls, otherForms(q.Dirs, q.Input)...)
		in.isPlain = !in.isCut && q.Input != "" && !hasInvisible(q.Input) && !isIndirect(q.Input)
		return in
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(q.Input), "")
	if err != nil {
		return in
	}
	in.calls = nil
	var others []string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var words, bareWords []string
			for _, w := range call.Args {
				words = append(words, source(q.Input, w))
				bareWords = append(bareWords, unquoted(words[len(words)-1]))
			}
			in.calls = append(in.calls, strings.Join(words, " "))
			others = append(others, otherForms(q.Dirs, bareWords...)...)
		}
		return true
	})
	if isPlainCall(file, q.Input) && !in.isCut {
		in.text, in.isPlain = in.calls[0], true
	}
	in.calls = append(in.calls, others...)
	return in
}

// isPlainCall reports whether a command line only calls one program with literal words.
func isPlainCall(file *syntax.File, line string) bool {
	// The parser and the shells disagree about a backslash at the end of a line.
	if len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 || hasInvisible(strings.ReplaceAll(line, "\t", " ")) {
		return false
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && source(line, call) == strings.TrimSpace(line) &&
		!slices.ContainsFunc(call.Args, func(w *syntax.Word) bool { return !isLiteral(w) })
}

// isLiteral reports whether a word reaches the program as it is written: none of the usual shells expands anything in
// it, and it has no backslash.
func isLiteral(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit: // zsh expands ~ and = also behind ''
			isExpanded := strings.ContainsAny(p.Value, "*?[]{}\\$`") || strings.Contains(p.Value, "=~") || strings.Contains(p.Value, ":~")
			if isExpanded || strings.ContainsAny(p.Value[:min(1, len(p.Value))], "~=") {
				return false
			}
		case *syntax.SglQuoted:
			if p.Dollar || strings.HasSuffix(p.Value, `\`) { // fish does not end the word at \'
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

// otherForms returns the words with each path among them in another form: relative to a directory, so with "./" in
// front, and absolute. A single word is a path.
func otherForms(dirs []string, words ...string) (forms []string) {
	for _, dir := range dirs {
		var relative, dotted, absolute []string
		for i, word := range words {
			rel, dot, abs := word, word, word
			isProgram := i == 0 && len(words) > 1
			if isPath := strings.Contains(word, "/") || len(words) == 1; isPath && !isProgram && word != "" && !strings.Contains(word, "://") {
				abs = filepath.Clean(word)
				if !filepath.IsAbs(abs) {
					abs = filepath.Join(dir, word)
				}
				rel, _ = filepath.Rel(dir, abs) // both are absolute
				dot = "./" + rel
			}
			relative, dotted, absolute = append(relative, rel), append(dotted, dot), append(absolute, abs)
		}
		forms = append(forms, strings.Join(relative, " "), strings.Join(dotted, " "), strings.Join(absolute, " "))
	}
	return forms
}

// ignoresCase is whether the file systems here take .GIT for .git, as a rule.
const ignoresCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// includes reports whether a command in the input matches a pattern, as it is written, as bare returns it or in another
// form.
func (in input) includes(pattern string) bool {
	expression := asRegexp(pattern)
	if ignoresCase && !in.isShell {
		expression = "(?i)" + expression
	}
	return slices.ContainsFunc(in.calls, func(call string) bool {
		return matches(expression, call) || in.isShell && matches(expression, bare(call))
	})
}

// mayInclude reports whether the input may run a command that matches, though includes finds none: an argument of a
// program that runs commands (sudo, sh -c), or a line that is not plain. macOS takes RM for rm, and .ENV for .env.
func (in input) mayInclude(pattern string) bool {
	if !in.isPlain || !in.isShell {
		return !in.isPlain || matches("(?i)"+asRegexp(pattern), in.text)
	}
	const anyWords, moreWords = "(?i)(.*[^a-zA-Z0-9])?", "( .*)?"
	text, behindWords := bare(in.text), anyWords+asRegexp(pattern)
	return matches(behindWords+moreWords, text) || matches(behindWords, text+" ")
}

// bare removes a command's quotes and its program's directory.
func bare(command string) string {
	s := unquoted(command)
	program, _, _ := strings.Cut(s, " ")
	return s[strings.LastIndexByte(program, '/')+1:]
}

func unquoted(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\`, "", `'`, "", `"`, "").Replace(s)
}

// hasInvisible reports whether a text contains characters that are not shown as they are: line ends, control characters
// and marks that change the direction of writing.
func hasInvisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.Is(unicode.C, r) || unicode.IsSpace(r) && r != ' ' || r == unicode.ReplacementChar
	})
}

// isIndirect reports whether a path has an element ".." and may leave the directory that it begins with, or could be
// written without an element "." or "".
func isIndirect(path string) bool {
	p := "/" + strings.ReplaceAll(path, `\`, "/") + "/"
	return strings.Contains(p, "/../") || strings.Contains(p, "/./") && p != "/./" || strings.Contains(strings.Replace(path, "://", "", 1), "//")
}

// TakesNoCommand reports whether a tool of a known agent takes a path, an address or a search text. The input of any
// other tool may be a command.
func TakesNoCommand(tool string) bool {
	switch strings.ToLower(strings.ReplaceAll(tool, "_", "")) {
	case "read", "edit", "write", "multiedit", "notebookedit", "notebookread", "glob", "grep", "ls", "list", "webfetch", "websearch",
		"readfile", "readmanyfiles", "writefile", "replace", "findfiles", "searchtext", "googlesearch", "applypatch", "patch", "todowrite",
		"search", "fetch", "delete", "move", "think", "switchmode":
		return true
	}
	return false
}

// QuoteAll returns words as they are typed in a shell.
func QuoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// Quote quotes a word for a shell. A text with a NUL, which no shell accepts, stays as it is.
func Quote(word string) string {
	if quoted, err := syntax.Quote(word, syntax.LangBash); err == nil {
		return quoted
	}
	return word
}
