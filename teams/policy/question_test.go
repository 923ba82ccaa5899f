package policy

import "testing"

// An id takes precedence over the label of another option.
func TestChoose(t *testing.T) {
	q := Question{Options: []Option{{ID: "1", Label: "2"}, {ID: "2", Label: "No"}, {ID: "x", Label: "Yes, once"}, {ID: "y", Label: "Yes, always"}}}
	for word, want := range map[string]string{
		"1": "1", "2": "2", "no": "2", "x": "x", "3": "x", "yes, a": "y",
		"": "", "yes": "", "0": "", "-1": "", "5": "",
	} {
		if got, err := q.Choose(word); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", word, got, err, want)
		}
	}
	if got, err := (&Question{}).Choose("any"); got != "any" || err != nil {
		t.Error(got, err)
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
