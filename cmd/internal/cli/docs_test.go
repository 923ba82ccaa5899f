package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/agents/all"
)

// documents returns the text of each document of the project, by its path.
func documents(t *testing.T) map[string]string {
	texts := map[string]string{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			var text []byte
			text, err = os.ReadFile(path)
			texts[path] = string(text)
		}
		return err
	})
	if err != nil || len(texts) < 15 {
		t.Fatalf("%d documents: %v", len(texts), err)
	}
	return texts
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unheard = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// No link of a document is dead: the file is there, and in it the heading.
func TestLinks(t *testing.T) {
	texts := documents(t)
	anchors := func(path string) (all []string) {
		for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(texts[path], ""), -1) {
			all = append(all, strings.ReplaceAll(unheard.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
		}
		return all
	}
	for path, text := range texts {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(l[1], ":") {
				continue // elsewhere
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); err != nil || anchor != "" && !slices.Contains(anchors(to), anchor) {
				t.Errorf("%s: dead link %s", path, l[1])
			}
		}
	}
}

var (
	comment   = regexp.MustCompile(`(?m)(\S)( {2,}| # ).*$`)
	typedLine = regexp.MustCompile(`(?m)(?:^ *(?:\$ )?|\$\(|\| |; |&& |ATM_\w+=\w+ )(atm (?:"[^"]*"|'[^']*'|[^"'|;)<>&\n])*)`)
	inText    = regexp.MustCompile("`(atm [^`|;<>…]*)`")
)

// Each command that a document shows can be typed. In a sentence it may lack what it needs.
func TestDocumentsCanBeTyped(t *testing.T) {
	typed := 0
	try := func(path, command string, mayLack bool) {
		typed++
		command = strings.TrimSpace(command)
		if err := typeIt(command); err != nil && !strings.HasPrefix(command, "atm VERB") && !(mayLack && strings.Contains(err.Error(), " needs ")) {
			t.Errorf("%s: %s: %v", path, command, err)
		}
	}
	for path, text := range documents(t) {
		for _, f := range inText.FindAllStringSubmatch(strings.ReplaceAll(fence.ReplaceAllString(text, ""), "\n", " "), -1) {
			try(path, f[1], true)
		}
		for _, block := range fence.FindAllString(text, -1) {
			for _, f := range typedLine.FindAllStringSubmatch(comment.ReplaceAllString(block, "$1"), -1) {
				try(path, f[1], false)
			}
		}
	}
	if typed < 200 {
		t.Errorf("only %d commands", typed)
	}
}

// What stands at the right of docs/coming-from.md is whole: each command can be typed as it is.
func TestComingFrom(t *testing.T) {
	rows := 0
	for line := range strings.Lines(documents(t)[filepath.Join("../../..", "docs", "coming-from.md")]) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 3 || cells[0] == "from" {
			continue
		}
		rows++
		commands := regexp.MustCompile("`(atm(?: [^`]*)?)`").FindAllStringSubmatch(cells[2], -1)
		if len(commands) == 0 {
			t.Errorf("%s: no command here: %s", cells[1], cells[2])
		}
		for _, c := range commands {
			if err := typeIt(c[1]); err != nil && c[1] != "atm" {
				t.Errorf("%s: %s: %v", cells[1], c[1], err)
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows", rows)
	}
}

// A topic fits a terminal. docs/reference.md shows those that it has no more to say about. The variables that the code
// reads are in the one on them.
func TestTopics(t *testing.T) {
	reference, err := os.ReadFile("../../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newApp("test").VisibleCommands() {
		if !regexp.MustCompile("`" + c.Name + "[` ]").Match(reference) {
			t.Errorf("docs/reference.md does not say what atm %s --json prints", c.Name)
		}
	}
	for _, topic := range topics() {
		for line := range strings.Lines(topic.text) {
			if len(line) > 81 {
				t.Errorf("%s: wider than 80 columns: %s", topic.name, line)
			}
		}
		if n := strings.Count(topic.text, "\n"); n > 25 {
			t.Errorf("%s has %d lines", topic.name, n)
		}
		if strings.Contains(string(reference), "`atm help "+topic.name+"`:") && !strings.Contains(string(reference), "```\n"+topic.text+"```\n") {
			t.Errorf("docs/reference.md does not show the topic %s as it is", topic.name)
		}
	}
	own := []string{"HOME", "PATH", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"} // everybody's
	for _, v := range all.Vendors {
		own = append(own, v.ProjectDir, v.Entry, v.EnvFile) // between a program and its hooks
	}
	reads := regexp.MustCompile(`(?:Getenv\(|LookupEnv\(|Variable: )"(\w+)"|"(ATM_\w+|XDG_\w+)"`)
	for _, dir := range []string{"cmd", "internal", "ptyrun", "mailbox", "teams", "watcher", "session"} {
		filepath.WalkDir("../../../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/test") || strings.Contains(path, "/bench") || strings.Contains(path, "crashtest") {
				return err
			}
			code, err := os.ReadFile(path)
			for _, m := range reads.FindAllStringSubmatch(string(code), -1) {
				if name := m[1] + m[2]; !slices.Contains(own, name) && !regexp.MustCompile(`\b`+name+`\b`).MatchString(topicText("environment")) {
					t.Errorf("%s: atm help environment does not name %s", path, name)
				}
			}
			return err
		})
	}
}
