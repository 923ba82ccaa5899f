package agents

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// patched are the lines of a patch, as Codex and OpenCode have them, that name a file.
var patched = []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "}

// maxEdits is how many files of a patch are looked at.
const maxEdits = 50

// Edits returns the absolute paths of the files that a call of a tool edits.
func (c *Call) Edits(tool string, arguments json.RawMessage) (paths []string) {
	var in map[string]any
	name, isEdit := c.Vendor.Edits[tool]
	if !isEdit || json.Unmarshal(arguments, &in) != nil {
		return nil
	}
	texts := []string{""}
	switch value := in[name].(type) {
	case string:
		texts[0] = value
	case []any: // Codex may give a command as words
		for _, word := range value {
			text, _ := word.(string)
			texts = append(texts, text)
		}
	}
	if name == "command" || name == "patchText" {
		for line := range strings.Lines(strings.Join(texts, "\n")) {
			for _, head := range patched {
				if path, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), head); ok {
					paths = append(paths, path)
				}
			}
		}
	} else {
		paths = slices.DeleteFunc(texts, func(path string) bool { return path == "" })
	}
	for i, path := range paths {
		if !filepath.IsAbs(path) {
			paths[i] = filepath.Join(cmp.Or(c.In.Text("cwd"), c.Dir), path)
		}
	}
	return paths[:min(len(paths), maxEdits)]
}
