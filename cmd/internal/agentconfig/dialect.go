package agentconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// A dialect is what a tool takes in one of its JSON files. A file with anything else it ignores as a whole, or does not
// start. All of them take the last of two members with one name, or none; atm takes neither.
//
// Found by starting the versions in tools.go with such files.
type dialect struct {
	mark           bool // a byte-order mark
	comments       bool
	trailingCommas bool
	schema         func() schema // nil: nothing more is known of the file
	isClosed       bool          // it has no other members
}

// A schema is what is known of a file's content. Its check returns what is wrong, "" if nothing is.
type schema interface{ check() string }

var (
	claudeJSON     = dialect{mark: true}
	claudeSettings = dialect{mark: true, schema: func() schema { return &claudeSchema{} }}
	codexHooks     = dialect{schema: func() schema { return &codexSchema{} }, isClosed: true}
	geminiJSON     = dialect{comments: true}
	opencodeJSON   = dialect{mark: true, comments: true, trailingCommas: true}
)

// fault returns what the tool does not take in a file; nil if nothing is known.
func (d dialect) fault(f *file) error {
	if f.mark != "" && !d.mark {
		return errors.New("a byte-order mark at its beginning")
	}
	doc, err := parseJSON(f.after)
	if err != nil {
		return err
	}
	if d.trailingCommas {
		doc.Standardize()
	} else if d.comments {
		blankComments(doc)
	}
	text := doc.Pack()
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	var anything jsontext.Value
	err = json.Unmarshal(text, &anything)
	var content schema
	if err == nil && d.schema != nil {
		content = d.schema()
		err = json.Unmarshal(text, content, json.RejectUnknownMembers(d.isClosed))
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
		return fmt.Errorf("line %d, %s is a JSON %v", at(semantic.ByteOffset), dotted(string(semantic.JSONPointer)), semantic.JSONKind)
	case err != nil:
		return err
	}
	if content != nil {
		if what := content.check(); what != "" {
			return errors.New(what)
		}
	}
	return nil
}

// dotted returns a JSON pointer as people write it.
func dotted(pointer string) string {
	return strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(strings.TrimPrefix(pointer, "/"))
}

// escapePointer returns a name as an element of a JSON pointer.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
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

// claudeSchema and codexSchema are the parts of the tools' files whose form atm knows. One malformed group of hooks,
// whoever wrote it, and none of the hooks run.
type claudeSchema struct {
	Hooks       map[string]jsontext.Value `json:"hooks"`
	Permissions struct {
		Allow []jsontext.Value `json:"allow"`
		Deny  []jsontext.Value `json:"deny"`
		Ask   []jsontext.Value `json:"ask"`
	} `json:"permissions"`
	Env             map[string]jsontext.Value `json:"env"`
	Model           string                    `json:"model"`
	DisableAllHooks bool                      `json:"disableAllHooks"`
}

type codexSchema struct {
	Hooks       map[string]jsontext.Value `json:"hooks"`
	Description string                    `json:"description"`
}

func (s *claudeSchema) check() string { return checkHooks(s.Hooks, nil, true) }

func (s *codexSchema) check() string { return checkHooks(s.Hooks, codexEvents, false) }

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
			return fmt.Sprintf("hooks.%s.%s is a JSON %v", event, dotted(string(semantic.JSONPointer)), semantic.JSONKind)
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
