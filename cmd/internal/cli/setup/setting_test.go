package setup

import (
	"cmp"
	"reflect"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/config"
)

// keysOf lists the keys of a type, with a * for names and numbers.
func keysOf(t reflect.Type, path string) (keys []string) {
	below := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch {
	case t.Kind() == reflect.Pointer:
		return keysOf(t.Elem(), path)
	case t.Kind() == reflect.Map, t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return keysOf(t.Elem(), below("*"))
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	for _, field := range reflect.VisibleFields(t) {
		keys = append(keys, keysOf(field.Type, below(cmp.Or(field.Tag.Get("toml"), strings.ToLower(field.Name))))...)
	}
	return keys
}

// Every key is said in words, and no words are for a key that is gone. One that has none is shown as it is.
func TestEveryKeyHasWords(t *testing.T) {
	keys := map[string]bool{}
	for _, key := range keysOf(reflect.TypeFor[config.Config](), "") {
		keys[strings.Replace(key, "members.*.session.", "session.", 1)] = true
	}
	has := map[string]bool{}
	for pattern := range settingWords {
		key, _, _ := strings.Cut(pattern, "=")
		has[key] = true
		if !keys[key] {
			t.Errorf("team.toml has no key %s, for which there are words", key)
		}
	}
	for key := range keys {
		if !has[key] {
			t.Errorf("there are no words for %s", key)
		}
	}
	unknown := config.Setting{Path: []string{"members", "sh", "newkey"}, Value: "value"}
	if got := inWords(unknown); got != `members.sh.newkey = "value"` {
		t.Errorf("an unknown key is shown as %s", got)
	}
}
