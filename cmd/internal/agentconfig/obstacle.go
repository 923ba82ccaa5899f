package agentconfig

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/agentteammail/atm/internal/agents/all"
)

// obstacle says what keeps a program from running the hooks that are installed, "" if nothing is known to. isHere: only in
// this project, while the hooks are the user's.
func (p *Installer) obstacle(r Request, top string) (why string, isHere bool) {
	if find := all.Find(r.Tool).Obstacle; find != nil {
		return find(p.of(r, top), lookUp)
	}
	return "", false
}

// lookUp returns the value at a pointer in a JSON or TOML file as JSON, "" if it has none, and its line in a JSON file.
func lookUp(path, pointer string) (value string, line int) {
	data, _, _ := readFile(path)
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if filepath.Ext(path) == ".toml" {
		doc, _ := parseTOML(string(data))
		data, _ = json.Marshal(doc)
	}
	root, err := parseJSON(data)
	if v := root.Find(pointer); err == nil && v != nil {
		return compact(v), 1 + bytes.Count(data[:v.StartOffset], []byte("\n"))
	}
	return "", 0
}
