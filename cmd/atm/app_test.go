package main

import "testing"

// TestApp checks the table of verbs: one arity a flag, an example a verb, no
// help page over 25 lines.
func TestApp(t *testing.T) {
	if err := app().Check(); err != nil {
		t.Fatal(err)
	}
}
