package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// editTools are the tools that edit a file, and the argument that names it, or is a patch of several.
var editTools = map[Tool]map[string]string{
	Claude:   {"Edit": "file_path", "Write": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"},
	Codex:    {"apply_patch": "command"},
	Gemini:   {"replace": "file_path", "write_file": "file_path"},
	OpenCode: {"edit": "filePath", "write": "filePath", "apply_patch": "patchText", "patch": "patchText"},
}

// patched are the lines of a patch, as Codex and OpenCode have them, that name a file.
var patched = []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "}

// maxEdits is how many files of a patch are looked at.
const maxEdits = 50

// edits returns the absolute paths of the files that a call of a tool edits.
func (c *call) edits(tool string, arguments json.RawMessage) (paths []string) {
	var in map[string]any
	name, isEdit := editTools[c.tool][tool]
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
			paths[i] = filepath.Join(cmp.Or(c.in.Text("cwd"), c.o.Dir), path)
		}
	}
	return paths[:min(len(paths), maxEdits)]
}

// noteEdits tells of the files that a call has edited.
func (c *call) noteEdits(ctx context.Context) {
	if c.o.Edited == nil {
		return
	}
	tool, arguments := c.in.Text("tool_name"), c.in.Get("tool_input")
	switch c.kind {
	case "PostToolUse":
	case "AfterTool":
		if response := c.in.Object("tool_response"); response.Get("error") != nil {
			return
		}
	case "message.part.updated":
		part := c.in.Object("properties").Object("part")
		if state := part.Object("state"); part.Text("type") == "tool" && state.Text("status") == "completed" {
			tool, arguments = part.Text("tool"), state.Get("input")
		}
	default:
		return
	}
	for _, path := range c.edits(tool, arguments) {
		c.o.Edited(ctx, path)
	}
}

// refuseEdit refuses a call that edits what another member has claimed. The tool does not run, so its start is no event.
func (c *call) refuseEdit() {
	if c.o.RefuseEdit == nil || c.kind != "PreToolUse" && c.kind != "BeforeTool" {
		return
	}
	for _, path := range c.edits(c.in.Text("tool_name"), c.in.Get("tool_input")) {
		if why := c.o.RefuseEdit(path); why != "" {
			c.refusal = prefix + " " + why
			c.events = slices.DeleteFunc(c.events, func(e wire.Event) bool { return e.Kind == "tool_call_start" })
			return
		}
	}
}
