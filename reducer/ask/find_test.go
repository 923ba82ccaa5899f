package ask

import (
	"errors"
	"testing"
)

// A name does not stand for a question that a message answers, if there is another.
func TestFind(t *testing.T) {
	dialog := Question{ID: "d3036d00-0000-7000-8000-000000000000", Agent: "bob", Kind: "permission", Running: true}
	other := dialog
	other.ID = "eeeeee00-0000-7000-8000-000000000000"
	asked := Question{Agent: "bob", Kind: "prompt", OnChannel: true, Running: true}
	for name, c := range map[string]struct {
		list []Question
		want string // an id; "-": several
	}{
		"one":                   {[]Question{dialog}, dialog.ID},
		"and one for a message": {[]Question{asked, dialog}, dialog.ID},
		"two":                   {[]Question{asked, dialog, other}, "-"},
		"for a message only":    {[]Question{asked}, ""},
	} {
		q, err := Find(c.list, "bob")
		many, isMany := errors.AsType[*ManyQuestionsError](err)
		switch {
		case c.want == "-":
			if !isMany || len(many.Questions) != 2 {
				t.Error(name, err)
			}
		case err != nil || q.ID != c.want:
			t.Error(name, q, err)
		}
	}
}
