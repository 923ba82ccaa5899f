package opencode

import (
	_ "embed"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/policy"
)

// configuration is what atm writes for OpenCode, and has a run of it bring along (tried with 1.18.33): a plugin, which is one file.
// The permission rules are left to the person: OpenCode merges those of several files, and {"bash":{…}} in one replaces
// "bash":"ask" in another, which would allow everything. The last matching pattern decides; "atm *>*" asks about
// redirections. A plugin can only add to the system prompt, so no mail is delivered there.
//
// Sources: https://opencode.ai/docs/config, …/plugins, …/permissions.
var configuration = &agents.Configuration{
	Files: func(in *agents.Install) []agents.File {
		path := in.At(agents.Place{Variable: "XDG_CONFIG_HOME", Home: ".config", Path: "opencode/plugins/atm.js"})
		return []agents.File{{Path: path, Comment: "//", Body: withCommand(in.Hook), Change: "a plugin that runs " + policy.QuoteAll(in.Hook)}}
	},
	Notes:     []string{`if "permission" in your opencode.json asks about "bash", allow atm there: "bash": {"*": "ask", ` + rules() + `, "atm *>*": "ask"}`},
	Bring:     bring,
	IsBrought: func(file string, _ func(string) string, _ func() []string) bool { return filepath.Ext(file) == ".js" },
	Without:   without,
}

func rules() string {
	all := agents.Each(agents.Verbs, func(verb string) string { return agents.Quoted("atm "+verb+" *") + `: "allow"` })
	all = append(all, agents.Each(agents.Looks, func(look string) string { return agents.Quoted("atm "+look) + `: "allow"` })...)
	return strings.Join(all, ", ")
}

// plugin passes on the events that parse understands, one at a time and without repetitions, and adds the primer to the
// system prompt of an agent that has a name. It fails open.
//
//go:embed atm.js
var plugin string

func withCommand(words []string) string {
	return strings.Replace(plugin, "$COMMAND", agents.Quoted(words), 1)
}

// config has configuration beside that of the person.
const config = "OPENCODE_CONFIG_CONTENT"

func bring(r *agents.Run) (b agents.Brought, why string) {
	b.File, b.Text = filepath.Join(r.Dir, "opencode.js"), withCommand(r.Words)
	changed, ok := withPlugins(agents.ValueOf(r.Env, config), func(all []any) []any { return append(all, fileURL(b.File)) })
	if !ok {
		return agents.Brought{}, config + " is set, and not to a JSON object"
	}
	b.Env = []string{config + "=" + changed}
	return b, ""
}

func without(env []string, file string) (left []string) {
	for _, pair := range env {
		if text, ok := strings.CutPrefix(pair, config+"="); ok {
			changed, isObject := withPlugins(text, func(all []any) []any {
				return slices.DeleteFunc(all, func(url any) bool { return url == fileURL(file) })
			})
			if changed == `{"plugin":[]}` {
				continue
			} else if isObject {
				pair = config + "=" + changed
			}
		}
		left = append(left, pair)
	}
	return left
}

// withPlugins returns a configuration with its list of plugins changed. ok: it is an object with such a list, or without.
func withPlugins(text string, change func([]any) []any) (changed string, ok bool) {
	object := map[string]json.RawMessage{}
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	standard, err := hujson.Standardize([]byte(text))
	if err != nil || json.Unmarshal(standard, &object) != nil || object == nil {
		return "", false
	}
	all := []any{}
	if list := object["plugin"]; list != nil && json.Unmarshal(list, &all) != nil {
		return "", false
	}
	if all = change(all); all == nil {
		all = []any{}
	}
	object["plugin"] = json.RawMessage(agents.Quoted(all))
	out, err := json.Marshal(object)
	return string(out), err == nil
}

func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}).String()
}
