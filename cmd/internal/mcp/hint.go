package mcp

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

// schemas are the arguments of each tool, by its name.
type schemas map[string]schema

// explain returns the error of a tool's command as one for the caller of the tool: flags become arguments, and the
// commands in a hint calls of tools. A command that is no tool stays one for a shell.
func (all schemas) explain(tool string, err error) error {
	e, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return err
	}
	said := *e
	for name := range all[tool].Properties {
		said.Message = regexp.MustCompile("--"+name+`\b`).ReplaceAllString(said.Message, `"`+name+`"`)
	}
	isOfTool := true // and not about flags that it does not have
	text := func(text string) string {
		text, ok := all[tool].withArguments(text, "", "")
		isOfTool = isOfTool && ok
		return text
	}
	hint := e.Hint.Render(text, all.call)
	switch {
	case e.Hint.String() == "atm "+tool+" --help":
		hint = "its arguments: " + strings.Join(slices.Sorted(maps.Keys(all[tool].Properties)), ", ")
	case !isOfTool:
		hint = ""
	}
	return said.WithHint("%s", hint)
}

var ofServer = regexp.MustCompile(` --(?:as|root|team)[ =](?:'[^']*'|[^\s,;]+)`)

// call returns a command as a call: `atm read --as bob --last` is `read with "last": true`.
func (all schemas) call(command string) string {
	short := strings.TrimPrefix(ofServer.ReplaceAllString(command, ""), "atm ")
	verb, _, _ := strings.Cut(short, " ")
	if s, isTool := all[verb]; isTool {
		if call, ok := s.withArguments(short, "with ", "and "); ok {
			return call
		}
	}
	return command
}

var flags = regexp.MustCompile(`--([a-z-]+)(?:[ =]([^\s,;:]+))?`)

// withArguments replaces flags by arguments of the tool, with a word before the first and the others; not ok: it does not
// have all of them.
func (s schema) withArguments(text, first, others string) (out string, ok bool) {
	ok = true
	out = flags.ReplaceAllStringFunc(text, func(found string) string {
		parts := flags.FindStringSubmatch(found)
		p, has := s.Properties[parts[1]]
		if !has {
			ok = false
			return found
		}
		argument, value := first+`"`+parts[1]+`"`, parts[2]
		isName := strings.ToUpper(value) == value // of a value
		switch {
		case p.Type == "boolean" && first != "":
			argument += ": true"
		case !isName && p.Type != "boolean":
			argument, value = argument+`: "`+value+`"`, ""
		}
		if first = others; value != "" && (!isName || p.Type == "boolean") {
			argument += " " + value
		}
		return argument
	})
	return out, ok
}
