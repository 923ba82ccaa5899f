package agentconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/agentteammail/atm/internal/agents"
)

// errByHand says that atm cannot edit a file as it is written.
var errByHand = errors.New("atm cannot edit it there")

// settings are a program's files of settings with its entries, or without them. A note is for what the person has to do.
func (p *Installer) settings(v *agents.Vendor, in *agents.Install, isRemoval bool) (files []*file, notes []string, err error) {
	for _, e := range p.entries(v, in, isRemoval) {
		i := slices.IndexFunc(files, func(f *file) bool { return f.path == e.File })
		if i < 0 {
			i, files = len(files), append(files, readFile(e.File))
		}
		f, edit := files[i], editJSON
		if filepath.Ext(f.path) == ".toml" {
			edit = editTOML
		}
		after, err := edit(f.after, e, isRemoval)
		switch {
		case f.err != nil:
			return nil, nil, f.err
		case errors.Is(err, errByHand):
			do := "put %s into %s of %s yourself: atm cannot edit it there"
			if isRemoval {
				do = "take %s out of %s of %s yourself: atm cannot edit it there"
			}
			notes = append(notes, fmt.Sprintf(do, e.Value, dotted(path.Dir(e.Pointer)), f.path))
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("%s (left unchanged): %w", f.path, err)
		}
		change := e.Change
		if isRemoval {
			change = removed
		}
		if after != f.after && !slices.Contains(f.changes, change) {
			f.changes = append(f.changes, change)
		}
		f.after = after
	}
	return files, notes, nil
}

// entries are a program's, with the root in the list of its sandbox. A removal takes the roots of other projects along.
func (p *Installer) entries(v *agents.Vendor, in *agents.Install, isRemoval bool) (entries []agents.Entry) {
	if v.Entries != nil {
		entries = v.Entries(in)
	}
	if v.Writable == nil {
		return entries
	}
	list, roots := in.At(v.Writable.Place), []string{p.Root}
	if isRemoval {
		json.Unmarshal([]byte(lookUp(list, v.Writable.Pointer)), &roots)
		roots = slices.DeleteFunc(roots, func(root string) bool { return root != p.Root && filepath.Base(root) != ".atm" })
	}
	for _, root := range roots {
		if root != "" {
			entries = append(entries, agents.Entry{
				File: list, Pointer: v.Writable.Pointer + "/-", Value: agents.Quoted(root), Change: "writable in the sandbox: " + root,
			})
		}
	}
	return entries
}

// dotted returns a JSON pointer as people write it.
func dotted(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// editJSON adds an entry to a document, or takes it out of there. A document that is laid out as usual stays so.
func editJSON(text string, e agents.Entry, isRemoval bool) (string, error) {
	root, err := parseJSON(text)
	if err != nil {
		return "", fmt.Errorf("cannot parse it: %w", err)
	}
	before := compact(root)
	if isRemoval {
		removeEntry(root, e)
	} else if err := addEntry(root, e); err != nil {
		return "", err
	}
	switch after := compact(root); {
	case after == before:
		return text, nil
	case after == "{}":
		return "", nil
	case text == "" || text == indent(text):
		return indent(root.String()), nil
	}
	return root.String(), nil
}

// parseJSON parses a document whose root is an object. A blank one counts as {}.
func parseJSON(text string) (*hujson.Value, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	root, err := hujson.Parse([]byte(text))
	if err == nil && root.Value.Kind() != '{' {
		err = errors.New("it is not an object")
	}
	return &root, err
}

func indent(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(strings.TrimSpace(text)), "", "  ") != nil { // it has comments
		return text
	}
	return b.String() + "\n"
}

// compact returns a value without comments and white space, "" for nil.
func compact(v *hujson.Value) string {
	if v == nil {
		return ""
	}
	minimal := v.Clone()
	minimal.Minimize()
	return minimal.String()
}

// indexOf returns the place of a value in a list, -1 if it is not there.
func indexOf(list *hujson.Value, value string) int {
	if list == nil || list.Value.Kind() != '[' {
		return -1
	}
	return slices.IndexFunc(list.Value.(*hujson.Array).Elements, func(v hujson.Value) bool { return compact(&v) == value })
}

func addEntry(root *hujson.Value, e agents.Entry) error {
	list, isList := strings.CutSuffix(e.Pointer, "/-")
	now := root.Find(list)
	switch {
	case isList && indexOf(now, e.Value) >= 0, compact(now) == e.Value:
		return nil
	case isList && now != nil && now.Value.Kind() != '[':
		return fmt.Errorf("%s is not a list", dotted(list))
	case !isList && now != nil:
		return fmt.Errorf("it already has its own %s: put %s there yourself", dotted(list), e.Value)
	}
	at, value := e.Pointer, e.Value
	for outer := path.Dir(at); outer != "/" && root.Find(outer) == nil; at, outer = outer, path.Dir(outer) {
		if name := path.Base(at); name == "-" {
			value = "[" + value + "]"
		} else {
			value = "{" + agents.Quoted(name) + ":" + value + "}"
		}
	}
	return root.Patch(fmt.Appendf(nil, `[{"op": "add", "path": %s, "value": %s}]`, agents.Quoted(at), value))
}

// removeEntry removes an entry that is there, and what is empty then.
func removeEntry(root *hujson.Value, e agents.Entry) {
	list, isList := strings.CutSuffix(e.Pointer, "/-")
	at, isStandard := list, root.IsStandard()
	if i := indexOf(root.Find(list), e.Value); isList && i >= 0 {
		at = fmt.Sprintf("%s/%d", list, i)
	} else if compact(root.Find(list)) != e.Value {
		return
	}
	for left := "{}"; left == "{}" || left == "[]"; at = path.Dir(at) {
		root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, agents.Quoted(at)))
		left = compact(root.Find(path.Dir(at)))
	}
	if isStandard {
		root.Standardize() // Patch may leave a comma
	}
}

// editTOML adds a text to a list in a table, or takes it out of there. No library edits TOML and keeps its comments.
func editTOML(text string, e agents.Entry, isRemoval bool) (string, error) {
	names := strings.Split(e.Pointer, "/") // "", the table, the list, "-"
	table, list := names[1], names[2]
	isIn, err := isInTOML(text, table, list, e.Value)
	if err != nil {
		return "", fmt.Errorf("cannot parse it: %w", err)
	}
	if isIn != isRemoval {
		return text, nil
	}
	header := `(?m)^\[` + table + `\][ \t]*(?:#.*)?\r?\n`
	begin := `(` + header + `(?:[^\[]*\n)?[ \t]*` + list + `[ \t]*=[ \t]*\[`
	after, lines := "", list+" = ["+e.Value+"]\n"
	if isRemoval {
		after = regexp.MustCompile(begin+`[^\]]*?)`+regexp.QuoteMeta(e.Value)+`[ \t]*,?[ \t]*`).ReplaceAllString(text, "$1")
		after = strings.ReplaceAll(after, "["+table+"]\n"+list+" = []\n", "")
	} else if at := regexp.MustCompile(begin + `)`).FindStringIndex(text); at != nil {
		after = text[:at[1]] + e.Value + ", " + text[at[1]:]
	} else if at := regexp.MustCompile(header).FindStringIndex(text); at != nil {
		after = text[:at[1]] + lines + text[at[1]:]
	} else {
		if after = text; after != "" && !strings.HasSuffix(after, "\n") {
			after += "\n"
		}
		after += "[" + table + "]\n" + lines
	}
	if isIn, err := isInTOML(after, table, list, e.Value); err != nil || isIn == isRemoval {
		return "", errByHand
	}
	return after, nil
}

// isInTOML reports whether a text, as JSON, is in a list of a table.
func isInTOML(text, table, list, value string) (bool, error) {
	doc, err := parseTOML(text)
	of, _ := doc[table].(map[string]any)
	all, _ := of[list].([]any)
	return slices.ContainsFunc(all, func(v any) bool { s, isText := v.(string); return isText && agents.Quoted(s) == value }), err
}

func parseTOML(text string) (doc map[string]any, err error) {
	var bad *toml.DecodeError
	if err = toml.Unmarshal([]byte(text), &doc); errors.As(err, &bad) {
		line, column := bad.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, bad)
	}
	return doc, err
}

// lookUp returns the value at a pointer in a JSON or TOML file as JSON, "" if it has none.
func lookUp(path, pointer string) string {
	text := strings.TrimPrefix(readFile(path).before, "\ufeff")
	if filepath.Ext(path) == ".toml" {
		doc, _ := parseTOML(text)
		data, _ := json.Marshal(doc)
		text = string(data)
	}
	root, err := parseJSON(text)
	if err != nil {
		return ""
	}
	return compact(root.Find(pointer))
}
