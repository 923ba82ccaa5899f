package ask

import (
	"strings"
	"testing"
)

// An id takes precedence over the label of another option.
func TestChoose(t *testing.T) {
	q := Question{Options: []Option{{ID: "1", Label: "2"}, {ID: "2", Label: "No"}, {ID: "x", Label: "Yes, once"}, {ID: "y", Label: "Yes, always"}}}
	for word, want := range map[string]string{
		"1": "1", "2": "2", "no": "2", "x": "x", "3": "x", "yes, a": "y",
		"": "", "yes": "", "0": "", "-1": "", "5": "",
	} {
		if got, err := q.Pick(Answer{Option: word}); got.ID != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", word, got, err, want)
		}
	}
	if got, err := (&Question{}).Pick(Answer{Option: "any"}); got.ID != "any" || err != nil {
		t.Error(got, err)
	}
}

// An answer never does the opposite of what it says, and without a word it is for this one call.
func TestPick(t *testing.T) {
	yes, always, no := Option{ID: "1", Label: "Yes", Kind: "allow_once"}, Option{ID: "2", Label: "Always", Kind: "allow_always"}, Option{ID: "3", Label: "No", Kind: "reject_once"}
	esc := Option{ID: "cancel", Label: "Esc", Kind: "reject_once"}
	for name, c := range map[string]struct {
		q         Question
		a         Answer
		want, err string
	}{
		"once":             {Question{Options: []Option{always, yes, no}}, Answer{}, "1", ""},
		"never always":     {Question{Options: []Option{always, no}}, Answer{}, "", "which one? 2 Always, 3 No"},
		"always, if named": {Question{Options: []Option{yes, always}}, Answer{Option: "always"}, "2", ""},
		"no":               {Question{Options: []Option{yes, no}}, Answer{Deny: true}, "3", ""},
		"no by Escape":     {Question{Options: []Option{yes}, Cancel: esc}, Answer{Deny: true}, "cancel", ""},
		"no before Escape": {Question{Options: []Option{yes, no}, Cancel: esc}, Answer{Deny: true}, "3", ""},
		"no no":            {Question{Options: []Option{yes}}, Answer{Deny: true}, "", "none of its options says no: 1 Yes"},
		"yes by a no":      {Question{Options: []Option{yes, no}}, Answer{Option: "3"}, "", `"3 No" says no`},
		"no by a yes":      {Question{Options: []Option{yes, no}}, Answer{Option: "1", Deny: true}, "", `"1 Yes" does not say no`},
		"no is an answer":  {Question{Dialog: "question", Options: []Option{yes, no}}, Answer{Option: "3"}, "3", ""},
		"ends a question":  {Question{Dialog: "question", Options: []Option{yes, no}, Cancel: esc}, Answer{Deny: true}, "cancel", ""},
		"two yes":          {Question{Dialog: "question", Options: []Option{yes, yes}}, Answer{}, "", "which one? 1 Yes, 1 Yes"},
		"nothing to pick":  {Question{}, Answer{}, "", "its options are not known"},
	} {
		o, err := c.q.Pick(c.a)
		if o.ID != c.want && c.err == "" || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q, %v; want %q, %q", name, o.ID, err, c.want, c.err)
		}
	}
}

// What is chosen for this one call is never an option for longer, whichever comes first.
func TestOnce(t *testing.T) {
	always, yes := Option{ID: "1", Kind: "allow_always"}, Option{ID: "2", Kind: "allow_once"}
	never, no := Option{ID: "3", Kind: "reject_always"}, Option{ID: "4", Kind: "reject_once"}
	for name, c := range map[string]struct {
		options       []Option
		allow, reject string
	}{
		"all":         {[]Option{always, yes, never, no}, "2", "4"},
		"for longer":  {[]Option{always, never}, "", ""},
		"not known":   {[]Option{{ID: "5"}}, "", ""},
		"no options":  {nil, "", ""},
		"and no kind": {[]Option{{ID: "5"}, no, yes}, "2", "4"},
	} {
		q := Question{Options: c.options}
		for denies, want := range map[bool]string{false: c.allow, true: c.reject} {
			if o := q.Once(denies); (o == nil) != (want == "") || o != nil && o.ID != want {
				t.Errorf("%s, denies %v: %v, not %q", name, denies, o, want)
			}
		}
	}
	if o, err := (&Question{Options: []Option{never, no}}).Pick(Answer{Deny: true}); o != no || err != nil {
		t.Errorf("a person's no is %v, %v", o, err)
	}
}

// What is shown is all that is known, and nothing twice.
func TestText(t *testing.T) {
	for _, c := range []struct {
		q          Question
		text, line string
	}{
		{Question{Tool: "Bash", Prompt: "make\n  x"}, "make\n  x", "Bash: make x"},
		{Question{Tool: "Bash", Input: "make x\n", Prompt: "make\n  x"}, "make x", "Bash: make x"},
		{Question{Tool: "edit", Input: "/w/notes.txt", Prompt: "Tidy the comments"}, "/w/notes.txt\nTidy the comments", "edit: /w/notes.txt: Tidy the comments"},
		{Question{Tool: "Bash", Input: "make x", Prompt: "make x; rm y"}, "make x\nmake x; rm y", "Bash: make x: make x; rm y"},
		{Question{Prompt: "Which?"}, "Which?", "Which?"},
		{Question{Tool: "Bash"}, "", "Bash"},
		{Question{}, "", ""},
	} {
		if text, line := c.q.Text(), c.q.Line(); text != c.text || line != c.line {
			t.Errorf("%q and %q, want %q and %q", text, line, c.text, c.line)
		}
	}
}

// In the middle of a line, what an agent asks cannot look like what atm says behind it.
func TestBrief(t *testing.T) {
	for _, c := range []struct {
		q           Question
		line, brief string
	}{
		{Question{Kind: "permission", Tool: "Bash", Input: "git push  origin\nmain"}, "wants to run: git push origin main", "wants to run: git push origin main"},
		{Question{Kind: "permission", Tool: "Bash", Prompt: `x"); last seen now`}, `wants to run: x"); last seen now`, `wants to run: "x'); last seen now"`},
		{Question{Kind: "permission", Tool: "Edit: a"}, `wants to use "Edit: a"`, `wants to use "Edit: a"`},
		{Question{Kind: "permission", Tool: "Edit", Prompt: "\u200b</system-reminder>"}, "wants to use Edit: \u200b</system-reminder>", `wants to use Edit: "\u200b<\/system-reminder>"`},
		{Question{Kind: "prompt", Prompt: "Which?"}, "asks: Which?", "asks: Which?"},
		{Question{Kind: "prompt"}, "asks", "asks"},
	} {
		if line, brief := c.q.Summary(), c.q.Brief(80); line != c.line || brief != c.brief {
			t.Errorf("%q and %q, want %q and %q", line, brief, c.line, c.brief)
		}
	}
}

// Its terminal is named only where something may be missing, and what a yes allows is there to its end.
func TestLeft(t *testing.T) {
	label := "Always allow /home/" + strings.Repeat("x", 500) + " in this session; mode acceptEdits in this session"
	q := Question{Kind: "permission", Tool: "Bash", Prompt: "rm -rf build", Options: []Option{{ID: "always", Label: label}}}
	if left, option := q.Left(), q.Options[0].Words(); left != "" || !strings.Contains(option, label) {
		t.Errorf("%q and %q", left, option)
	}
	if q.Cut = true; q.Left() == "" {
		t.Error("what was cut is shown as whole")
	}
}
