package agents

import "testing"

// The embedded files have no mistakes.
func TestBuiltIn(t *testing.T) {
	for _, name := range builtInNames() {
		text, err := embedded.ReadFile(name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		_, mistakes := Parse(name, text)
		for _, m := range mistakes {
			t.Errorf("%s.toml: %s", name, m)
		}
	}
}
