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
