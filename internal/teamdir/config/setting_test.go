package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fill gives every field that v has, at any depth, a value that is not the default, and returns the paths of these.
func fill(t *testing.T, path string, v reflect.Value) (paths []string) {
	t.Helper()
	below := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			key := strings.ToLower(field.Name)
			if tag := field.Tag.Get("toml"); tag != "" {
				key = tag
			}
			paths = append(paths, fill(t, below(key), v.Field(i))...)
		}
		return paths
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		paths = fill(t, below("k"), item)
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), item)
		return paths
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if isText := v.Type().Elem().Kind() == reflect.String; isText {
			fill(t, "", v.Index(0))
			return []string{path}
		}
		return fill(t, below("0"), v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(t, path, v.Elem())
	case reflect.String:
		v.SetString("v")
		if strings.Contains(path, "members.k.session.") {
			v.SetString("w") // unlike the team's
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int64, reflect.Int:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		t.Fatalf("%s is a %s: what a test sets there is not known", path, v.Kind())
	}
	return []string{path}
}

// What is shown of a configuration lacks no key, whatever keys there will be.
func TestSettingsHaveEveryKey(t *testing.T) {
	c := Default()
	want := fill(t, "", reflect.ValueOf(c).Elem())
	own := c.Members["k"].Session
	own.AllowHumanInput = true // the team's is false
	got := map[string]string{}
	for _, s := range c.Settings() {
		got[s.Key()] = s.Text()
	}
	want = slices.DeleteFunc(want, func(key string) bool {
		isEnabled := key == "members.k.session.enabled" // a pointer to another value
		return isEnabled && got[key] == ""
	})
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(got)); !slices.Equal(have, want) {
		t.Errorf("shown are\n%s\nof\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	if len(want) < 30 {
		t.Errorf("the test knows only %d keys", len(want))
	}
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"", ""},
		{"approvers = []", "approvers = []"},
		{"lead = \"bob\"\n[members.bob]\n[members.al]\ninject = \"run\"\nenv = { B = \"2\", A = \"1\" }\nafter = [\"bob\"]",
			`lead = "bob"; members.al.env.A = "1"; members.al.env.B = "2"; members.al.inject = "run"; members.al.after = ["bob"]`},
		{"[members.lead]", `lead = "lead"`},
		{"[session]\noutput_capture = \"pipe\"\nallow_human_input = false\n[members.bob.session]\nallow_human_input = true\n[members.al.session]\nenabled = false",
			`session.allow_human_input = false; members.al.session.enabled = false; members.bob.session.allow_human_input = true`},
		{"members = { bob = { session = { Allow_Human_Input = false } } }\n[session]\noutput_capture = \"pty\"", // any case, and any order
			`session.output_capture = "pty"; members.bob.session.allow_human_input = false`},
		{"[[rules]]\ntool = \"*\"\ndecision = \"deny\"\n[[rules]]\nagent=\"bob\"\ntool = \"Bash\"\ndecision = \"ask\"\n[members.bob]",
			`rules.0.tool = "*"; rules.0.decision = "deny"; rules.1.agent = "bob"; rules.1.tool = "Bash"; rules.1.decision = "ask"`},
		{"[[on]]\nevent = \"idle, mail\"\ncommand = [\"a\", \"b c\"]", `on.0.event = "idle,mail"; on.0.command = ["a","b c"]`},
		{"[groups]\nall_of = [\"bob\"]\n[members.bob]\n[bridge]\nreplicas = 3", `groups.all_of = ["bob"]; bridge.replicas = 3`},
	} {
		c, mistakes := Parse([]byte(tt.file), nil)
		if len(mistakes) > 0 {
			t.Errorf("%s: %v", tt.file, mistakes)
		}
		var got []string
		for _, s := range c.Settings() {
			got = append(got, fmt.Sprintf("%s = %s", s.Key(), s.Text()))
		}
		if all := strings.Join(got, "; "); all != tt.want {
			t.Errorf("%q:\n%s\nwant\n%s", tt.file, all, tt.want)
		}
	}
}
