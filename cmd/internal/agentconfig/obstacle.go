package agentconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/teams/policy"
)

// The directories with the settings that an administrator writes; "": none is known for this system.
var (
	claudeManaged = map[string]string{"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode"}[runtime.GOOS]
	codexManaged  = map[string]string{"linux": "/etc/codex", "darwin": "/etc/codex"}[runtime.GOOS]
	geminiManaged = map[string]string{"linux": "/etc/gemini-cli", "darwin": "/Library/Application Support/GeminiCli"}[runtime.GOOS]
)

// A switchFile is a file with a setting that may keep a tool from running hooks.
type switchFile struct {
	path   string
	isHere bool // it belongs to this project
}

// obstacle says what keeps a tool from running the hooks that are installed, "" if nothing is known to. isHere: only in
// this project, while the hooks are the user's.
//
// Tried with the versions in tools.go: of several files the last counts that says something.
func (p *Installer) obstacle(r Request, top string) (why string, isHere bool) {
	user := r
	user.Local = false
	switch r.Tool {
	case "claude":
		parts, _ := filepath.Glob(filepath.Join(claudeManaged, "managed-settings.d", "*.json"))
		for _, managed := range append(parts, filepath.Join(claudeManaged, "managed-settings.json")) {
			for _, pointer := range []string{"/allowManagedHooksOnly", "/disableAllHooks"} {
				if why := isSet(managed, pointer, "true"); why != "" {
					return why, false
				}
			}
		}
		return lastOff(r, "/disableAllHooks", "true", []switchFile{
			{p.path(user, top, "", "CLAUDE_CONFIG_DIR", ".claude", "settings.json"), false},
			{filepath.Join(top, ".claude", "settings.json"), true}, {filepath.Join(top, ".claude", "settings.local.json"), true},
		})
	case "gemini":
		dir := p.path(user, top, "", "GEMINI_CLI_HOME", "", ".gemini")
		files := []switchFile{
			{filepath.Join(dir, "settings.json"), false}, {filepath.Join(top, ".gemini", "settings.json"), true},
			{filepath.Join(geminiManaged, "settings.json"), false},
		}
		if why := untrusted(filepath.Join(dir, "trustedFolders.json"), top); why != "" && r.Local {
			return why, false
		}
		command := quoted(policy.QuoteAll(p.command(r.Agent, "hook", r.Tool)))
		for _, f := range files {
			if list, _ := lookUp(f.path, "/hooksConfig/disabled"); strings.Contains(list, command) {
				return fmt.Sprintf("hooksConfig.disabled in %s names atm's hook", f.path), f.isHere && !r.Local
			}
		}
		return lastOff(r, "/hooksConfig/enabled", "false", files)
	case "codex":
		managed := filepath.Join(codexManaged, "requirements.toml")
		if why := cmp.Or(isSet(managed, "/allow_managed_hooks_only", "true"), isSet(managed, "/features/hooks", "false")); why != "" {
			return why, false
		}
		dir := p.path(user, top, "", "CODEX_HOME", ".codex", "")
		if why := isSet(filepath.Join(dir, "config.toml"), "/projects/"+escapePointer(top)+"/trust_level", "untrusted"); why != "" && r.Local {
			return why, false
		}
		files := []switchFile{{filepath.Join(dir, "config.toml"), false}, {filepath.Join(top, ".codex", "config.toml"), true}}
		name := "/features/hooks"
		if !slices.ContainsFunc(files, func(f switchFile) bool { value, _ := lookUp(f.path, name); return value != "" }) {
			name = "/features/codex_hooks" // its older name
		}
		return lastOff(r, name, "false", files)
	}
	return "", false
}

// untrusted says which of Gemini CLI's rules has it not trust a directory: the longest of those that are about it counts.
func untrusted(path, dir string) (why string) {
	all, _ := lookUp(path, "")
	rules, longest := map[string]string{}, ""
	json.Unmarshal([]byte(all), &rules) // one that is no text is no rule
	for rule, trust := range rules {
		above := rule
		if trust == "TRUST_PARENT" {
			above = filepath.Dir(rule)
		}
		rel, err := filepath.Rel(above, dir)
		if err == nil && filepath.IsLocal(rel) && len(rule) > len(longest) {
			longest, why = rule, isSet(path, "/"+escapePointer(rule), "DO_NOT_TRUST")
		}
	}
	return why
}

// lastOff says which file switches the hooks off, if the last that has the setting does.
func lastOff(r Request, pointer, off string, files []switchFile) (why string, isHere bool) {
	for _, f := range files {
		if value, _ := lookUp(f.path, pointer); value != "" {
			why = isSet(f.path, pointer, off)
			isHere = why != "" && f.isHere && !r.Local
		}
	}
	return why, isHere
}

// isSet says that a setting has a value, with its place; "": it has not. Tools take "false" for false.
func isSet(path, pointer, want string) string {
	value, line := lookUp(path, pointer)
	if strings.Trim(value, `"`) != want {
		return ""
	}
	place := path
	if line > 0 {
		place = fmt.Sprintf("%s, line %d", path, line)
	}
	return fmt.Sprintf("%s is %s in %s", dotted(pointer), value, place)
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
