package agentconfig

import (
	"bytes"
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

// tomlFile puts keys into a TOML file, in lines that end in a mark: right behind the header of the table that a key
// belongs to, or with a header of ours at the end. No library edits TOML and keeps its comments: where neither is
// possible, a note says what to add by hand.
func tomlFile(path, label string, keys []tomlKey) edit {
	return edit{path: path, apply: func(f *file) error { return f.editTOML(" # atm install "+label, keys) }}
}

func (f *file) editTOML(mark string, keys []tomlKey) error {
	isServer := strings.HasSuffix(mark, " --mcp")
	was, _ := parseTOML(string(f.after))
	hasServer := isServer && (bytes.Contains(f.after, []byte(mark)) || keys[0].isIn(was))
	text := f.withoutOurs(mark, keys, f.isRemoval && hasServer)
	doc, err := parseTOML(text)
	if err != nil {
		return fmt.Errorf("%s cannot be understood, and was left alone: %w", f.path, err)
	}
	var said []string
	for _, k := range keys {
		if f.isRemoval || k.want == "" || k.isIn(doc) {
			continue
		}
		if list, _ := k.in(was)[k.key].([]any); list != nil { // it names other roots already
			if !slices.Contains(list, any(k.want)) {
				list = append(list, k.want)
			}
			k.value = quoted(list)
		}
		if more := k.addTo(text, mark); more != "" {
			text, said = more, append(said, k.said)
			continue
		}
		lines := strings.ReplaceAll(k.key+" = "+k.value, "\n", " and ")
		note := fmt.Sprintf("%s: nothing can be added to %s: put %s there yourself", f.path, k.table, lines)
		if isServer {
			return errors.New(note) // there is nothing else to install
		}
		f.notes = append(f.notes, note)
	}
	if is, _ := parseTOML(text); f.isRemoval || !reflect.DeepEqual(is, was) {
		f.set(text, cmp.Or(strings.Join(said, "; "), "taken out: what atm had added"))
	}
	return nil
}

// addTo is the text with the key, "" where that is not possible.
func (k tomlKey) addTo(text, mark string) string {
	before, own, after := endLine(text), "["+k.table+"]"+mark+"\n", ""
	header := regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(k.table) + `\][ \t]*(#.*)?\r?\n`)
	if at := header.FindStringIndex(before); at != nil {
		before, own, after = before[:at[1]], "", before[at[1]:]
	}
	more := before + own + strings.ReplaceAll(k.key+" = "+k.value+"\n", "\n", mark+"\n") + after
	if is, err := parseTOML(more); err != nil || !k.isIn(is) {
		return ""
	}
	return more
}

// withoutOurs is the file without the lines that end in a mark, but those that somebody has edited. Where the marks are
// lost, the record says which lines of the keys are ours. A header of ours stays where others have put something into
// its table. The table of our server goes with all that is in it, since Codex does not start where that has no command;
// comments stay, they may be about the next one.
func (f *file) withoutOurs(mark string, keys []tomlKey, isServer bool) (left string) {
	in := "" // the header that a line stands below
	isKey := func(line string) bool {
		return slices.ContainsFunc(keys, func(k tomlKey) bool {
			header := "[" + k.table + "]"
			return line == header || strings.HasPrefix(in, header) && strings.HasPrefix(line, k.key+" = ")
		})
	}
	isGone, header, table := false, "", keys[0].table
	for line := range strings.Lines(string(f.after)) {
		s := strings.TrimSpace(line)
		isHeader := strings.HasPrefix(s, "[")
		if isHeader {
			header, in = "", s
			isGone = isServer && (strings.HasPrefix(s, "["+table+"]") || strings.HasPrefix(s, "["+table+"."))
		}
		own, isOurs := strings.CutSuffix(s, mark)
		isOurs = isOurs || f.isRemoval && f.isRecorded && isKey(s) && !f.isEdited(s)
		if isOurs {
			line = own + "\n"
		}
		switch {
		case s == "" || s[0] == '#':
			left += line
		case isGone:
		case isOurs && isHeader:
			header = line
		case !isOurs || f.isEdited(s):
			left += header + line
			header = ""
		}
	}
	return left
}

// isEdited reports whether a line of ours is not as an install wrote it.
func (f *file) isEdited(line string) bool {
	was, is := f.record.Original, f.record.Installed
	return f.isRecorded && (!bytes.Contains(is, []byte(line)) || bytes.Contains(was, []byte(line)))
}

func parseTOML(text string) (doc map[string]any, err error) {
	var bad *toml.DecodeError
	if err = toml.Unmarshal([]byte(text), &doc); errors.As(err, &bad) {
		line, column := bad.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, bad)
	}
	return doc, err
}

func (k tomlKey) in(doc map[string]any) map[string]any {
	for _, name := range strings.Split(k.table, ".") {
		doc, _ = doc[name].(map[string]any)
	}
	return doc
}

func (k tomlKey) isIn(doc map[string]any) bool {
	is := k.in(doc)[k.key]
	list, _ := is.([]any)
	return is == any(k.want) || slices.Contains(list, any(k.want))
}
