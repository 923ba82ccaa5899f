package agentconfig

import (
	"errors"
	"fmt"
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

// tomlFile puts keys into a TOML file, in one marked block at its end. No library edits TOML and keeps
// its comments: where the file has such a table already, a note says what to add by hand.
func tomlFile(path, tool string, keys []tomlKey) edit {
	return edit{path, func(f *file) error {
		_, _, own := blockMarks("#", tool)
		text, body := own.ReplaceAllLiteralString(string(f.after), ""), ""
		doc, err := parseTOML(text)
		if err != nil {
			return f.notUnderstood(err)
		}
		var said []string
		for _, k := range keys {
			more := fmt.Sprintf("[%s]\n%s = %s\n", k.table, k.key, k.value)
			if _, err := parseTOML(text + "\n" + body + more); f.isRemoval || k.want == "" || k.isIn(doc) {
				continue
			} else if err != nil {
				f.notes = append(f.notes, fmt.Sprintf("%s has a [%s] of its own: add %s = %s to it yourself", path, k.table, k.key, k.value))
				continue
			}
			body += more
			said = append(said, k.said)
		}
		f.replaceBlock("#", tool, body, strings.Join(said, "; "), "taken out: what atm had added")
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

func (k tomlKey) isIn(doc map[string]any) bool {
	for _, name := range strings.Split(k.table, ".") {
		doc, _ = doc[name].(map[string]any)
	}
	list, _ := doc[k.key].([]any)
	return doc[k.key] == k.want || slices.Contains(list, any(k.want))
}
