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
	want       string // the value, or an element of the list that it is; "": the key is not wanted
	value      string // as TOML
	change     string // for the report
}

// tomlFile is the edit of a TOML file that gets keys, in lines that end in atm's mark: right behind the header of the
// key's table, or with a header of atm's own at the end. No library edits TOML and keeps its comments. A key that fits
// in neither way becomes a note; for a server, which has nothing else to install, that is an error.
func tomlFile(path, tool string, isServer bool, keys []tomlKey) edit {
	return edit{path, isServer, func(f *file) error {
		mark := " " + mark(tool, isServer)
		was, _ := parseTOML(string(f.after))
		hasServer := isServer && (bytes.Contains(f.after, []byte(mark)) || keys[0].isIn(was))
		text := f.withoutMarked(mark, keys, f.isRemoval && hasServer)
		doc, err := parseTOML(text)
		if err != nil {
			return fmt.Errorf("cannot parse %s (left unchanged): %w", f.path, err)
		}
		var changes []string
		for _, k := range keys {
			if f.isRemoval || k.want == "" || k.isIn(doc) {
				continue
			}
			if list, _ := k.tableIn(was)[k.key].([]any); list != nil { // our line has the roots of other repositories
				if !slices.Contains(list, any(k.want)) {
					list = append(list, k.want)
				}
				k.value = quoted(list)
			}
			if more := k.addTo(text, mark); more != "" {
				text, changes = more, append(changes, k.change)
				continue
			}
			lines := strings.ReplaceAll(k.key+" = "+k.value, "\n", " and ")
			note := fmt.Sprintf("%s: atm cannot add to %s: put %s there yourself", f.path, k.table, lines)
			if isServer {
				return errors.New(note)
			}
			f.notes = append(f.notes, note)
		}
		if now, _ := parseTOML(text); f.isRemoval || !reflect.DeepEqual(now, was) {
			f.setText(text, cmp.Or(strings.Join(changes, "; "), "atm's additions removed"))
		}
		return nil
	}}
}

// addTo returns the text with the key added, "" if that is not possible.
func (k tomlKey) addTo(text, mark string) string {
	before, lines, after := endLine(text), k.key+" = "+k.value+"\n", ""
	header := regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(k.table) + `\][ \t]*(#.*)?\r?\n`)
	if at := header.FindStringIndex(before); at != nil {
		before, after = before[:at[1]], before[at[1]:]
	} else {
		lines = "[" + k.table + "]\n" + lines
	}
	text = before + strings.ReplaceAll(lines, "\n", mark+"\n") + after
	if doc, err := parseTOML(text); err != nil || !k.isIn(doc) {
		return ""
	}
	return text
}

// withoutMarked returns the file without the lines that end in the mark, except those that somebody has edited. Once a
// tool has dropped the marks, the record says which lines of the keys are atm's. A header of atm's stays if others have
// put something into its table. A server's table goes with all that is in it, since Codex does not start if the table
// has no command; but comments stay, they may be about the next table.
func (f *file) withoutMarked(mark string, keys []tomlKey, removeServer bool) (left string) {
	table, ownHeader := "", "" // the header that the line is below, up to its "]"; one of atm's, kept once a line stays
	for line := range strings.Lines(string(f.after)) {
		text := strings.TrimSpace(line)
		isHeader := strings.HasPrefix(text, "[")
		if isHeader {
			table, _, _ = strings.Cut(text, "]")
			ownHeader = ""
		}
		unmarked, isOurs := strings.CutSuffix(text, mark)
		if f.isRemoval && f.isRecorded && !f.isEdited(text) {
			isOurs = isOurs || slices.ContainsFunc(keys, func(k tomlKey) bool {
				return table == "["+k.table && (isHeader || strings.HasPrefix(text, k.key+" = "))
			})
		}
		if isOurs {
			line = unmarked + "\n"
		}
		switch {
		case text == "" || text[0] == '#':
			left += line
		case removeServer && strings.HasPrefix(table+".", "["+keys[0].table+"."):
		case isOurs && isHeader:
			ownHeader = line
		case !isOurs || f.isEdited(text):
			left += ownHeader + line
			ownHeader = ""
		}
	}
	return left
}

// isEdited reports whether a line differs from all that install wrote.
func (f *file) isEdited(line string) bool {
	original, installed := f.record.Original, f.record.Installed
	return f.isRecorded && (!bytes.Contains(installed, []byte(line)) || bytes.Contains(original, []byte(line)))
}

func parseTOML(text string) (doc map[string]any, err error) {
	var bad *toml.DecodeError
	if err = toml.Unmarshal([]byte(text), &doc); errors.As(err, &bad) {
		line, column := bad.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, bad)
	}
	return doc, err
}

// tableIn returns the key's table, nil if the document has none.
func (k tomlKey) tableIn(doc map[string]any) map[string]any {
	for _, name := range strings.Split(k.table, ".") {
		doc, _ = doc[name].(map[string]any)
	}
	return doc
}

func (k tomlKey) isIn(doc map[string]any) bool {
	value := k.tableIn(doc)[k.key]
	list, _ := value.([]any)
	return value == any(k.want) || slices.Contains(list, any(k.want))
}
