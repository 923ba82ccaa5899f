package agentconfig

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

type tomlKey struct {
	table, key string
	want       string // the string that the value is, or that is in the list
	value      string // as TOML
	said       string // what a person is told
}

// tomlFile puts keys into a TOML file, in marked blocks: right behind the header of the table that a key belongs to, or
// with a header of ours at the end. No library edits TOML and keeps its comments: where neither is possible, a note says
// what to add by hand.
func tomlFile(path, label string, keys []tomlKey) edit {
	return edit{path, func(f *file) error {
		body := ""
		for _, k := range keys {
			body += fmt.Sprintf("[%s]\n%s = %s\n", k.table, k.key, k.value)
		}
		text := f.withoutBlocks("#", label, body)
		doc, err := parseTOML(text)
		if err != nil {
			return f.notUnderstood(err)
		}
		if f.isRemoval {
			// What others put into the server's table goes with it: Codex does not start where that has no command.
			if strings.HasSuffix(label, "--mcp") && text != string(f.after) && keys[0].find(doc) == nil {
				text = withoutTable(text, keys[0].table)
			}
			f.set(text, "taken out: what atm had added")
			return nil
		}
		begin, end := blockMarks("#", label)
		var said []string
		for _, k := range keys {
			if k.want == "" || k.isIn(doc) {
				continue
			}
			before, header, after := endLine(text), "["+k.table+"]\n", ""
			own := regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(k.table) + `\][ \t]*(#.*)?\r?\n`)
			if at := own.FindStringIndex(before); at != nil {
				before, header, after = before[:at[1]], "", before[at[1]:]
			}
			more := before + begin + header + k.key + " = " + k.value + "\n" + end + after
			if is, err := parseTOML(more); err != nil || !k.isIn(is) {
				note, isInline := k.byHand(path, doc)
				if isInline && strings.HasSuffix(label, "--mcp") { // there is nothing else to install
					return errors.New(note)
				}
				f.notes = append(f.notes, note)
				continue
			}
			text, said = more, append(said, k.said)
		}
		was, _ := parseTOML(string(f.after))
		if is, _ := parseTOML(text); !reflect.DeepEqual(is, was) {
			f.set(text, cmp.Or(strings.Join(said, "; "), "taken out: what atm had added"))
		}
		return nil
	}}
}

func parseTOML(text string) (doc map[string]any, err error) {
	var bad *toml.DecodeError
	if err = toml.Unmarshal([]byte(text), &doc); errors.As(err, &bad) {
		line, column := bad.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, bad)
	}
	return doc, err
}

// withoutTable takes out a table and those below it, but no comments: they may be about the next one.
func withoutTable(text, table string) (left string) {
	isIn := false
	for line := range strings.Lines(text) {
		s := strings.TrimSpace(line)
		if strings.HasPrefix(s, "[") {
			isIn = strings.HasPrefix(s, "["+table+"]") || strings.HasPrefix(s, "["+table+".")
		}
		if !isIn || s == "" || s[0] == '#' {
			left += line
		}
	}
	return left
}

// byHand says what to add by hand where no header of ours can stand: into the user's own table, or into an inline table
// around it, which nothing outside of its braces adds to.
func (k tomlKey) byHand(path string, doc map[string]any) (note string, isInline bool) {
	outer, name, _ := strings.Cut(k.table, ".")
	if around, ok := doc[outer].(map[string]any); ok && name != "" && around[name] == nil {
		pairs := k.key + " = " + strings.ReplaceAll(k.value, "\n", ", ")
		return fmt.Sprintf("%s: %s is an inline table: put %s = { %s } into it yourself", path, outer, name, pairs), true
	}
	pairs := k.key + " = " + strings.ReplaceAll(k.value, "\n", " and ")
	return fmt.Sprintf("%s has a [%s] of its own: add %s to it yourself", path, k.table, pairs), false
}

func (k tomlKey) find(doc map[string]any) any {
	for _, name := range strings.Split(k.table, ".") {
		doc, _ = doc[name].(map[string]any)
	}
	return doc[k.key]
}

func (k tomlKey) isIn(doc map[string]any) bool {
	list, _ := k.find(doc).([]any)
	return k.find(doc) == any(k.want) || slices.Contains(list, any(k.want))
}
