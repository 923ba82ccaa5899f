package agentconfig

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/agentteammail/atm/internal/agents"
)

// tomlFile is the edit of a TOML file that gets keys, in lines that end in atm's mark: right behind the header of the
// key's table, or with a header of atm's own at the end. No library edits TOML and keeps its comments. A key that fits
// in neither way becomes a note; for a server, which has nothing else to install, that is an error.
func tomlFile(path, tool string, isServer bool, keys []agents.Key) edit {
	return edit{path: path, isServer: isServer, apply: func(f *file, isRemoval bool) error {
		mark := " " + mark(tool, isServer)
		server := ""
		if isServer && isRemoval {
			server = keys[0].Table
		}
		text := withoutMarked(string(f.after), mark, server)
		was, _ := parseTOML(string(f.after))
		doc, err := parseTOML(text)
		if err != nil {
			return fmt.Errorf("cannot parse %s (left unchanged): %w", f.path, err)
		}
		if isRemoval {
			f.setText(text, "")
			return nil
		}
		var changes []string
		for _, k := range keys {
			if k.Want == "" || isKeyIn(doc, k) {
				continue
			}
			if list, _ := table(was, k.Table)[k.Name].([]any); list != nil { // our line has the roots of other repositories
				if !slices.Contains(list, any(k.Want)) {
					list = append(list, k.Want)
				}
				k.Value = agents.Quoted(list)
			}
			if more := withKey(text, mark, k); more != "" {
				text, changes = more, append(changes, k.Change)
				continue
			}
			lines := strings.ReplaceAll(k.Name+" = "+k.Value, "\n", " and ")
			note := fmt.Sprintf("%s: atm cannot add to %s: put %s there yourself", f.path, k.Table, lines)
			if isServer {
				return errors.New(note)
			}
			f.notes = append(f.notes, note)
		}
		if now, _ := parseTOML(text); !reflect.DeepEqual(now, was) {
			f.setText(text, strings.Join(changes, "; "))
		}
		return nil
	}}
}

// withKey returns the text with the key added, "" if that is not possible.
func withKey(text, mark string, k agents.Key) string {
	before, lines, after := endLine(text), k.Name+" = "+k.Value+"\n", ""
	header := regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(k.Table) + `\][ \t]*(#.*)?\r?\n`)
	if at := header.FindStringIndex(before); at != nil {
		before, after = before[:at[1]], before[at[1]:]
	} else {
		lines = "[" + k.Table + "]\n" + lines
	}
	text = before + strings.ReplaceAll(lines, "\n", mark+"\n") + after
	if doc, err := parseTOML(text); err != nil || !isKeyIn(doc, k) {
		return ""
	}
	return text
}

// withoutMarked returns a text without the lines that end in the mark. A header of atm's stays, without the mark, if
// others have put something into its table. But a server's table goes with all that is in it, except comments, since
// the program may not start if the table has no command.
func withoutMarked(text, mark, server string) (left string) {
	header, isInServer := "", false // a header of atm's, which stays once a line below it does
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		unmarked, isOurs := strings.CutSuffix(trimmed, mark)
		if strings.HasPrefix(trimmed, "[") {
			isServer := server != "" && strings.Contains(text, mark)
			isInServer = isServer && (strings.HasPrefix(trimmed, "["+server+"]") || strings.HasPrefix(trimmed, "["+server+"."))
			header = ""
			if isOurs {
				header = unmarked + "\n"
			}
		}
		switch {
		case trimmed == "" || trimmed[0] == '#':
			left += line
		case !isOurs && !isInServer:
			left += header + line
			header = ""
		}
	}
	return left
}

func parseTOML(text string) (doc map[string]any, err error) {
	var bad *toml.DecodeError
	if err = toml.Unmarshal([]byte(text), &doc); errors.As(err, &bad) {
		line, column := bad.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, bad)
	}
	return doc, err
}

// table returns the table of that name, nil if the document has none.
func table(doc map[string]any, name string) map[string]any {
	for _, name := range strings.Split(name, ".") {
		doc, _ = doc[name].(map[string]any)
	}
	return doc
}

func isKeyIn(doc map[string]any, k agents.Key) bool {
	value := table(doc, k.Table)[k.Name]
	list, _ := value.([]any)
	return value == any(k.Want) || slices.Contains(list, any(k.Want))
}
