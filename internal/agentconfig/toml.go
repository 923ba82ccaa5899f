package agentconfig

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlMark ends every line that we add to a TOML file.
const tomlMark = " # atm install"

// tomlEdit is a TOML file while it is edited. No library edits TOML and keeps
// its comments, so the text is edited, in each of the ways in which people
// write such a thing, and the first result counts that a parser reads as the
// document that was meant. Where there is none, the person is told what to
// write.
type tomlEdit struct {
	*file
	doc      map[string]any
	original map[string]any // what the file was before us; nil: not known
}

func parseTOML(data []byte) (map[string]any, error) {
	doc := map[string]any{}
	err := toml.Unmarshal(data, &doc)
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, bad)
	}
	return doc, err
}

// editTOML has a function edit the document in a file.
func (f *file) editTOML(do func(*tomlEdit) error) error {
	doc, err := parseTOML(f.after)
	if err != nil {
		return f.notUnderstood(err)
	}
	e := &tomlEdit{file: f, doc: doc}
	if f.record != nil {
		e.original, _ = parseTOML(f.record.Original)
	}
	if err := do(e); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// tomlGet gives the value of a key in a table such as "a.b", nil where it is
// not there.
func tomlGet(doc map[string]any, table, key string) any {
	for _, k := range strings.Split(table, ".") {
		doc, _ = doc[k].(map[string]any)
	}
	return doc[key]
}

func tomlStrings(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (e *tomlEdit) get(table, key string) any { return tomlGet(e.doc, table, key) }

// try makes the first of these texts the file's that says the same as it does
// now, but for one key: value nil is its absence.
func (e *tomlEdit) try(texts []string, table, key string, value any) bool {
	want := leaves(e.doc, "")
	delete(want, table+"."+key)
	if value != nil {
		want[table+"."+key] = fmt.Sprintf("%#v", value)
	}
	for _, text := range texts {
		doc, err := parseTOML([]byte(text))
		if err == nil && maps.Equal(leaves(doc, ""), want) {
			e.after, e.doc = []byte(text), doc
			return true
		}
	}
	return false
}

// leaves are all values in a document that are no tables, as Go writes them.
func leaves(doc map[string]any, path string) map[string]string {
	out := map[string]string{}
	for k, v := range doc {
		if table, ok := v.(map[string]any); ok {
			maps.Copy(out, leaves(table, path+k+"."))
		} else {
			out[path+k] = fmt.Sprintf("%#v", v)
		}
	}
	return out
}

// addStrings puts into a list what of values is not in it.
func (e *tomlEdit) addStrings(values []string, table, key string) error {
	list, isList := e.get(table, key).([]any)
	if !isList && e.get(table, key) != nil {
		return fmt.Errorf("%s.%s is not a list; the file was left alone", table, key)
	}
	for _, s := range values {
		if slices.Contains(tomlStrings(list), s) {
			continue
		}
		texts := e.insertPair(table, key+" = ["+quoted(s)+"]")
		if list != nil {
			texts = insertBefore(string(e.after), key, ']', quoted(s))
		}
		list = append(slices.Clip(list), s)
		if !e.try(texts, table, key, list) {
			e.note("%s could not be edited: add %s to %s of [%s] yourself", e.path, quoted(s), key, table)
			return nil
		}
		e.added = append(e.added, s)
		e.say("writable in the sandbox: %s", s)
	}
	return nil
}

// setString gives a key a string.
func (e *tomlEdit) setString(value, table, key string) {
	is := e.get(table, key)
	if is == value {
		return
	}
	pair := key + " = " + quoted(value)
	texts := e.insertPair(table, pair)
	if is != nil {
		texts = e.replaceValue(key, quoted(value))
	}
	if !e.try(texts, table, key, value) {
		e.note("%s could not be edited: add %s to [%s] yourself", e.path, pair, table)
		return
	}
	e.added = append(e.added, value)
	e.say("ATM_AGENT is %s here, for the shell tool", value)
}

// replaceValue gives a key's value another text, wherever such a key stands.
func (e *tomlEdit) replaceValue(key, value string) (texts []string) {
	text := string(e.after)
	pattern := regexp.MustCompile(`\b` + key + `"?[ \t]*=[ \t]*("[^"\n]*"|'[^'\n]*')`)
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		texts = append(texts, text[:m[2]]+value+text[m[3]:])
	}
	return texts
}

// insertPair puts a key into a table: into an inline one, behind its header, or
// at the end with a header. The lines that it adds are marked.
func (e *tomlEdit) insertPair(table, pair string) []string {
	text, nl := string(e.after), "\n"
	if strings.Contains(text, "\r\n") {
		nl = "\r\n"
	}
	texts := insertBefore(text, table[strings.LastIndexByte(table, '.')+1:], '}', pair)
	line := pair + tomlMark + nl
	header := regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*` + regexp.QuoteMeta(table) + `[ \t]*\][ \t]*(#.*)?\n`)
	if m := header.FindStringIndex(text); m != nil {
		texts = append(texts, text[:m[1]]+line+text[m[1]:])
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += nl
	}
	if text != "" {
		text += nl
	}
	return append(texts, text+"["+table+"]"+tomlMark+nl+line)
}

// insertBefore puts an item at the end of a list or an inline table that is the
// value of key: before every closing bracket behind it, with and without a
// comma, on a line of its own where the bracket is.
func insertBefore(text, key string, bracket byte, item string) (texts []string) {
	at := regexp.MustCompile(`\b` + key + `"?[ \t]*=[ \t]*[\[{]`).FindStringIndex(text)
	if at == nil {
		return nil
	}
	const most = 100
	for i := at[1]; i < len(text) && len(texts) < most; i++ {
		if text[i] != bracket {
			continue
		}
		start := strings.LastIndexByte(text[:i], '\n') + 1
		if start > at[0] && strings.TrimSpace(text[start:i]) == "" {
			above := text[:start]
			above = above[strings.LastIndexByte(strings.TrimRight(above, "\r\n"), '\n')+1:]
			indent := above[:len(above)-len(strings.TrimLeft(above, " \t"))]
			end := above[len(strings.TrimRight(above, "\r\n")):]
			texts = append(texts, text[:start]+indent+item+","+end+text[start:], text[:start]+indent+", "+item+end+text[start:])
			continue
		}
		head := strings.TrimRight(text[:i], " \t")
		for _, comma := range []string{", ", "", " "} {
			texts = append(texts, head+comma+item+text[len(head):])
		}
	}
	return texts
}

// removeStrings takes these values out of a list, but for those that were in it
// before us, and the whole list with the last of them.
func (e *tomlEdit) removeStrings(values []string, table, key string) {
	for _, s := range values {
		list, _ := e.get(table, key).([]any)
		if !slices.Contains(tomlStrings(list), s) || slices.Contains(tomlStrings(tomlGet(e.original, table, key)), s) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == s })
		var value any = left
		texts := e.removeText(quoted(s))
		if len(left) == 0 {
			if alone := e.removeMarkedLines(key); e.try(alone, table, key, nil) {
				texts = nil
			}
		}
		if texts == nil || e.try(texts, table, key, value) {
			e.say("no longer writable in the sandbox: %s", s)
		}
	}
}

// removeText takes an item out of a list or an inline table, in each place
// where it stands: its line, or itself with a comma.
func (e *tomlEdit) removeText(item string) (texts []string) {
	text, q := string(e.after), regexp.QuoteMeta(item)
	for _, pattern := range []string{`(?m)^[ \t]*,?[ \t]*` + q + `[ \t]*,?[ \t]*\r?\n`, `,[ \t]*` + q, q + `[ \t]*,[ \t]*`, q} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringIndex(text, -1) {
			texts = append(texts, text[:m[0]]+text[m[1]:])
		}
	}
	return texts
}

// removeMarkedLines takes out a line of ours that sets key.
func (e *tomlEdit) removeMarkedLines(key string) (texts []string) {
	text := string(e.after)
	pattern := regexp.MustCompile(`(?m)^[ \t]*` + key + `[ \t]*=.*` + tomlMark + `[ \t]*\r?(\n|\z)`)
	for _, m := range pattern.FindAllStringIndex(text, -1) {
		texts = append(texts, text[:m[0]]+text[m[1]:])
	}
	return texts
}

// resetString takes back what setString did, unless somebody else has changed
// the key since.
func (e *tomlEdit) resetString(table, key string) {
	is, _ := e.get(table, key).(string)
	marked := e.removeMarkedLines(key)
	if e.record != nil && !slices.Contains(e.record.Added, is) || e.record == nil && marked == nil {
		return
	}
	was, _ := tomlGet(e.original, table, key).(string)
	texts, value := slices.Concat(marked, e.removeText(key+" = "+quoted(is))), any(nil)
	if was != "" {
		texts, value = e.replaceValue(key, quoted(was)), was
	}
	if is != was && e.try(texts, table, key, value) {
		e.say("ATM_AGENT taken out")
	}
}

// removeMarkedTables takes out the headers of ours that nothing stands behind.
func (e *tomlEdit) removeMarkedTables() {
	pattern := regexp.MustCompile(`(?m)(?:^[ \t]*\r?\n)?^\[[\w.]+\]` + tomlMark + `[ \t]*\r?\n([ \t\r\n]*)(\[|\z)`)
	e.after = pattern.ReplaceAll(e.after, []byte("$1$2"))
}
