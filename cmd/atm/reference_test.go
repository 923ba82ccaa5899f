package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a script of commands prints with --json has no key that docs/reference.md does not name: those of the object in the
// row of the command, those below anywhere in its tables. $ID is the id of the last message that was sent.
func TestReferenceJSON(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference.md"))
	format, err2 := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	must(t, err)
	must(t, err2)
	_, tables, _ := strings.Cut(string(text), "## JSON\n")
	tables, _, _ = strings.Cut(tables, "\n## ")
	rows, known := map[string]string{}, tables+string(format)
	for line := range strings.Lines(tables) {
		if cells := strings.SplitN(line, " | ", 2); len(cells) == 2 {
			for _, verb := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
				rows[verb[1]] = cells[1]
			}
		}
	}
	objects := map[string]string{"send": "outcome", "reply": "outcome", "ack": "outcome", "withdraw": "outcome", "event": "event", "events": "event", "status": "member", "stop": "agent result", "approve": "agent result"}
	for verb, object := range objects {
		_, row, _ := strings.Cut(tables, "| "+object+" | ")
		row, _, _ = strings.Cut(row, "\n")
		rows[verb] += row
		if object == "event" {
			rows[verb] += string(format)
		}
	}
	names := func(where, key string) bool { return regexp.MustCompile("[`.]" + key + "\\??`").MatchString(where) }
	var below func(verb string, v any)
	below = func(verb string, v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				below(verb, item)
			}
		case map[string]any:
			for key, value := range v {
				if !names(known, key) {
					t.Errorf("atm %s: docs/reference.md does not name %q", verb, key)
				}
				if key != "payload" && key != "meta" {
					below(verb, value)
				}
			}
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, errors.Join(err, os.Mkdir(filepath.Join(dir, "app"), 0o700)))
	id := ""
	for _, command := range strings.Split(strings.TrimSpace(referenceScript), "\n") {
		c := exec.Command("sh", "-c", "atm "+command+" --json")
		c.Dir = filepath.Join(dir, "app")
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "ID=" + id, "ATM_AGENT=me", "GORACE=atexit_sleep_ms=0"}
		out, err := c.Output()
		words := strings.Fields(command + " ")
		verb := words[0]
		if two := strings.Join(words[:min(2, len(words))], " "); rows[two] != "" {
			verb = two
		}
		var object map[string]any
		if json.Unmarshal(out, &object) != nil || err != nil && verb != "ask" {
			t.Fatalf("atm %s: %v\n%s", command, err, out)
		}
		if is, _ := object["id"].(string); verb == "send" || verb == "ask" {
			id = is
		}
		if verb == "ask" { // nobody answers
			continue
		}
		for key := range object {
			if !names(rows[verb], key) {
				t.Errorf("atm %s: the row of %s does not name %q", command, verb, key)
			}
		}
		below(verb, object)
	}
}

const referenceScript = `
init --here alice bob me
where
send bob Rebase --ack
trace $ID
read --as bob
ack $ID --done merged --as bob
ls --sent
ls --count
ls --bad
show $ID --as bob
thread $ID
search Rebase
unread $ID --as bob
send alice "later" --in 2h
ls --later
withdraw $ID
wait 1s
ask me "Deploy?" --choice yes --choice no --as bob --timeout 100ms
pending
approve $ID 1
team
team ls
team add jobs --shared
send jobs "a job"
take jobs --as alice
status bob
claim a.go --as bob
claim
claim --release a.go --as bob
watch --mail-me 'idle bob'
event turn_started turn_id=1 --as bob
event turn_completed turn_id=1 status=completed --as bob
history bob
events bob --limit 1
stop bob
down
doctor
gc
backup all.tar
restore all.tar --root copy
session new --agent bob
session ls
doctor --driver all
doctor --driver plain
install claude --dry-run
uninstall claude
bridge keygen --host laptop
team retire jobs
team restore jobs
version
help
primer
`
