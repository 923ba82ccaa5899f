package agentconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/agentteammail/atm/internal/agents"
)

// fault returns what the program does not take in a file; nil if nothing is known.
func fault(d *agents.Dialect, f *file) error {
	if f.mark != "" && !d.Mark {
		return errors.New("a byte-order mark at its beginning")
	}
	doc, err := parseJSON(f.after)
	if err != nil {
		return err
	}
	if d.TrailingCommas {
		doc.Standardize()
	} else if d.Comments {
		blankComments(doc)
	}
	text := doc.Pack()
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	var anything jsontext.Value
	err = json.Unmarshal(text, &anything)
	if err == nil && d.Schema != nil {
		err = json.Unmarshal(text, d.Schema(), json.RejectUnknownMembers(d.IsClosed))
	}
	at := func(offset int64) int { return 1 + strings.Count(string(text[:offset]), "\n") }
	switch {
	case errors.As(err, &syntax):
		what, here := fmt.Sprint(syntax.Err), string(text[syntax.ByteOffset:])
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			what = fmt.Sprintf("%q for the second time", syntax.JSONPointer.LastToken())
		case strings.HasPrefix(here, "/"):
			what = "a comment"
		case strings.HasPrefix(here, ",") || strings.HasPrefix(here, "}") || strings.HasPrefix(here, "]"):
			what = "a comma behind the last element"
		}
		return fmt.Errorf("line %d, %s", at(syntax.ByteOffset), what)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fmt.Errorf("line %d, %q beside the hooks", at(semantic.ByteOffset), semantic.JSONPointer.LastToken())
	case errors.As(err, &semantic):
		return fmt.Errorf("line %d, %s is a JSON %v", at(semantic.ByteOffset), agents.Dotted(string(semantic.JSONPointer)), semantic.JSONKind)
	case err != nil:
		return err
	}
	if d.Schema != nil {
		var content struct {
			Hooks map[string]jsontext.Value `json:"hooks"`
		}
		if err := json.Unmarshal(text, &content); err != nil {
			return err
		}
		if what := checkHooks(content.Hooks, d.Lists, d.NeedsHooks); what != "" {
			return errors.New(what)
		}
	}
	return nil
}

// blankComments replaces the comments by spaces.
func blankComments(root *hujson.Value) {
	blank := func(extra hujson.Extra) {
		for i, b := range extra {
			if !strings.ContainsRune(" \t\r\n", rune(b)) {
				extra[i] = ' '
			}
		}
	}
	for v := range root.All() {
		blank(v.BeforeExtra)
		blank(v.AfterExtra)
		switch c := v.Value.(type) {
		case *hujson.Object:
			blank(c.AfterExtra)
		case *hujson.Array:
			blank(c.AfterExtra)
		}
	}
}

// checkHooks returns the first malformed group. The events must be lists; of the others only lists are looked at.
func checkHooks(hooks map[string]jsontext.Value, events []string, needsHooks bool) string {
	for event, value := range hooks {
		var groups []*struct {
			Matcher string `json:"matcher"`
			Hooks   []*struct {
				Type    string  `json:"type"`
				Command string  `json:"command"`
				Timeout float64 `json:"timeout"`
			} `json:"hooks"`
		}
		if value.Kind() != '[' {
			if slices.Contains(events, event) {
				return "hooks." + event + " is not []"
			}
			continue
		}
		var semantic *json.SemanticError
		if err := json.Unmarshal(value, &groups); errors.As(err, &semantic) {
			return fmt.Sprintf("hooks.%s.%s is a JSON %v", event, agents.Dotted(string(semantic.JSONPointer)), semantic.JSONKind)
		}
		for i, group := range groups {
			if group == nil || group.Hooks == nil && needsHooks {
				return fmt.Sprintf("hooks.%s.%d has no hooks", event, i)
			}
			for n, hook := range group.Hooks {
				if hook == nil || hook.Type == "" || hook.Type == "command" && hook.Command == "" {
					return fmt.Sprintf("hooks.%s.%d.hooks.%d has no type or no command", event, i, n)
				}
			}
		}
	}
	return ""
}
