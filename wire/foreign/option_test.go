package foreign

import "testing"

// An option whose id and label contradict each other, or say neither yes nor no, has no kind.
func TestOptionKind(t *testing.T) {
	for option, want := range map[[2]string]string{
		{"1", "Yes"}:                                       "allow_once",
		{"1", "Yes, proceed"}:                              "allow_once",
		{"allow-once", "Allow once"}:                       "allow_once",
		{"approve", "Go on"}:                               "allow_once",
		{"1", "Yes, and manually approve edits"}:           "allow_once",
		{"2", "Yes, and don't ask again for git commands"}: "allow_always",
		{"2", "Yes, and auto-accept edits"}:                "allow_always",
		{"1", "Yes, and use auto mode"}:                    "allow_always",
		{"1", "Yes, automatically accept edits"}:           "allow_always",
		{"1", "Yes, and bypass permissions"}:               "allow_always",
		{"2", "Allow for this session"}:                    "allow_always",
		{"allow", "All of them, from now on"}:              "allow_always",
		{"1", "Yes, I trust this folder"}:                  "allow_always",
		{"3", "No, suggest changes"}:                       "reject_once",
		{"reject", "Reject"}:                               "reject_once",
		{"", "Cancel"}:                                     "reject_once",
		{"deny", "Not this one"}:                           "reject_once",
		{"4", "No, and don't ask again"}:                   "reject_always",
		{"allow", "Deny"}:                                  "",
		{"no", "Yes"}:                                      "",
		{"", "None of the above"}:                          "",
		{"", "Allowed before"}:                             "",
		{"", "Yesterday's"}:                                "",
		{"", "Confirm"}:                                    "",
		{"", "Accept theirs"}:                              "",
		{"", "Trust folder"}:                               "",
		{"", "Don't wait, push now"}:                       "",
		{"", "Cancel the others and deploy"}:               "",
		{"", "Back up first"}:                              "",
		{"", ""}:                                           "",
	} {
		if got := OptionKind(option[0], option[1]); got != want {
			t.Errorf("%q: %q, not %q", option, got, want)
		}
	}
}
