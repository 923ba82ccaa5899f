package agentconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	if d.Comments {
		doc.Standardize()
	}
	text := doc.Pack()
	var anything jsontext.Value
	var syntax *jsontext.SyntacticError
	if err = json.Unmarshal(text, &anything); !errors.As(err, &syntax) {
		return err
	}
	what, before, here := fmt.Sprint(syntax.Err), text[:syntax.ByteOffset], string(text[syntax.ByteOffset:])
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		what = fmt.Sprintf("%q for the second time", syntax.JSONPointer.LastToken())
	case strings.HasPrefix(here, "/"):
		what = "a comment"
	case strings.HasPrefix(here, ",") || strings.HasPrefix(here, "}") || strings.HasPrefix(here, "]"):
		what = "a comma behind the last element"
	}
	return fmt.Errorf("line %d, %s", 1+strings.Count(string(before), "\n"), what)
}
