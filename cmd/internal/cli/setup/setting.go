package setup

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/teams/policy"
)

// shownSetting is a key of team.toml, and what it does.
type shownSetting struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	Says  string          `json:"says"`
}

// shownSettings are all keys that have been set. That there is none for a key in words only makes it less readable.
func shownSettings(c *config.Config) []shownSetting {
	all := []shownSetting{}
	for _, s := range c.Settings() {
		all = append(all, shownSetting{s.Key(), json.RawMessage(s.Text()), inWords(s)})
	}
	return all
}

// settingWords say what a key does, for any name or number in place of a *. {1} is the second part of its path, {n} that
// as a number from 1, and {v} the value. "=" and a value stand for this one only.
var settingWords = map[string]string{
	"lead":       "{v} leads: is asked, answers for the others, and may stop and start them",
	"approvers":  "who may approve: {v}",
	"approvers=": "nobody may approve",

	"members.*.person=true":          "{1}'s answers count as a person's",
	"members.*.role":                 "{1} has the role {v}",
	"members.*.command":              "atm up runs {1}: {v}",
	"members.*.cwd":                  "{1} runs in {v}",
	"members.*.env.*":                "{1} runs with {3}={v}",
	"members.*.driver":               "{1}'s screen is read as one of {v}",
	"members.*.inject":               "mail gets into {1} as {v}",
	"members.*.inject=run":           "{1} runs its mail as commands",
	"members.*.inject=pointer":       "{1} is only told to read its mail",
	"members.*.inject=off":           "no mail is typed into {1}",
	"members.*.restart":              "when {1} ends it is started again: {v}",
	"members.*.resume=true":          "each start of {1} continues its last conversation",
	"members.*.size":                 "{1}'s terminal has {v} cells",
	"members.*.prompt":               "atm types into {1}, once: {v}",
	"members.*.after":                "{1} starts after {v}",
	"members.*.worktree=true":        "atm up makes a git worktree for {1}, and runs it there",
	"members.*.serves":               "{1} takes work by itself from the inbox of {v}",
	"members.*.lease":                "what {1} takes by itself is its own for {v}",
	"members.*.from":                 "{1} is given only the mail of {v}",
	"members.*.after_limit":          "when the usage limit of {1} is over: {v}",
	"members.*.after_limit=continue": "{1} is told to go on when its usage limit is over",

	"session.enabled=true":            "runners begin interactive sessions",
	"session.enabled=false":           "there are no interactive sessions",
	"session.output_capture":          "what people see in a session: {v}",
	"session.allow_human_input=true":  "people may write in a session",
	"session.allow_human_input=false": "nobody may write in a session",
	"session.auto_exit_on":            "a session ends by itself: {v}",
	"session.resume_cmd":              "a session is continued with: {v}",

	"groups.*": "@{1} is {v}",

	"rules.*.role":     "rule {n}: for the role {v}",
	"rules.*.agent":    "rule {n}: for {v}",
	"rules.*.tool":     "rule {n}: tool {v}",
	"rules.*.decision": "rule {n}: {v}",

	"on.*.event":   "command {n}: on {v}",
	"on.*.who":     "command {n}: of {v}",
	"on.*.command": "command {n}: this is run: {v}",
	"on.*.timeout": "command {n}: for at most {v}",
	"on.*.tokens":  "command {n}: at {v} tokens",
	"on.*.cost":    "command {n}: at a cost of {v}",

	"bridge.host":     "this machine is called {v}",
	"bridge.nats":     "atm bridge connects to {v}",
	"bridge.creds":    "atm bridge gives that server the credentials in {v}",
	"bridge.replicas": "atm bridge has {v} copies of each stream made",
}

// inWords says what a setting does; of one that nobody knows the key, it says key and value.
func inWords(s config.Setting) string {
	path := s.Path
	about := ""
	if len(path) > 3 && path[0] == "members" && path[2] == "session" {
		about, path = path[1]+": ", path[2:]
	}
	value := valueInWords(s)
	pattern := strings.Join(path, ".")
	if inNames := map[string]int{"members": 1, "groups": 1, "rules": 1, "on": 1}[path[0]]; inNames > 0 && len(path) > 1 {
		parts := append([]string{}, path...)
		if parts[1] = "*"; len(parts) > 3 {
			parts[3] = "*"
		}
		pattern = strings.Join(parts, ".")
	}
	words, ok := settingWords[pattern+"="+value]
	if !ok {
		words, ok = settingWords[pattern]
	}
	if !ok {
		return s.Key() + " = " + s.Text()
	}
	replace := []string{"{v}", value}
	for i, part := range path {
		replace = append(replace, fmt.Sprintf("{%d}", i), part)
	}
	if n, err := strconv.Atoi(path[min(1, len(path)-1)]); err == nil {
		replace = append(replace, "{n}", strconv.Itoa(n+1))
	}
	return about + strings.NewReplacer(replace...).Replace(words)
}

func valueInWords(s config.Setting) string {
	v := reflect.Indirect(reflect.ValueOf(s.Value))
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var words []string
	for i := range v.Len() {
		words = append(words, fmt.Sprint(v.Index(i).Interface()))
	}
	if s.Path[len(s.Path)-1] == "command" {
		return policy.QuoteAll(words)
	}
	return strings.Join(words, ", ")
}
