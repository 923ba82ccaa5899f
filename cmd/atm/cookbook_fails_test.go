//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a recipe prints when an agent fails, is slow, does not start or is never satisfied, or a person says no; and how
// it continues once that is mended.
func TestCookbookFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about, recipe  string
		files          map[string]string
		limit          string
		args           []string
		me             func(context.Context, *kitchen)
		code           int
		says           string // a regexp for what it prints
		mail           string // a message that somebody got
		again          int    // its exit code without files and limit; -1: it is not run again
		afterwards     string // and what it prints last
		withoutPrompts bool
	}{
		{
			about: "an agent whose turns fail", recipe: "pair.sh", files: map[string]string{"broken": "alice\n"},
			code: 1, says: `the turn of alice ended without an answer: failed`, afterwards: "approved in round 2",
		},
		{
			about: "a reviewer who is never content", recipe: "pair.sh", files: map[string]string{"strict": ""},
			code: 1, says: `not approved: The tests are missing\.`, again: 1, // its names are used up
		},
		{
			about: "one that takes too long", recipe: "pipeline.sh", files: map[string]string{"slow": "60"}, limit: "1500ms",
			code: 4, says: `no answer from alice within 1\.5s`, afterwards: "tested: built: the plan",
		},
		{
			about: "one of several that fails", recipe: "fanout.sh", files: map[string]string{"broken": "carol\n"},
			code: 6, says: `Together: 2`, mail: "script > alice: Make one answer out of these to: a name?\n\nalice: alice says so\nbob: bob says so\ncarol: has not answered",
			again: -1,
		},
		{
			about: "one that does not start", recipe: "pipeline.sh", files: map[string]string{".atm/main/team.toml": "[members.alice]\ncommand = [\"fakeagent\"]\ndriver = \"claude\"\n[members.carol]\ncommand = [\"sh\", \"-c\", \"echo no licence; exit 3\"]\nrestart = \"never\"\n"},
			code: 6, says: `carol.*exited with 3 before it was ready(.|\n)*no licence`, withoutPrompts: true, again: -1,
		},
		{
			about: "a person who says no", recipe: "human.sh",
			me:   func(ctx context.Context, k *kitchen) { say(ctx, k, "Not on a Friday.") },
			code: 5, mail: "script > bob: No release of 1.4: Not on a Friday.", again: 5,
		},
		{
			about: "what bob asks for is refused", recipe: "human.sh", limit: "150s",
			me: func(ctx context.Context, k *kitchen) {
				for ctx.Err() == nil && k.Command("atm", "reject", "bob", "--as", "me").Run() != nil {
				}
			},
			code: 1, says: `the turn of bob ended without an answer: completed`, again: -1,
		},
		{
			about: "a night that is too short", recipe: "nightly.sh", files: map[string]string{"slow": "60"}, args: []string{"monday", "jobs.txt", "3"},
			code: 4, mail: "script > me: clean: NOT DONE by alice\nlogs: NOT DONE by bob\ntests: NOT DONE by alice",
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			t.Parallel()
			k := newKitchen(t)
			r := recipes[slices.IndexFunc(recipes, func(r recipe) bool { return r.name == c.recipe })]
			r.me = c.me
			r.meanwhile(k)
			for name, text := range c.files {
				k.Write(name, text)
			}
			k.limit = c.limit
			args := c.args
			if args == nil {
				args = r.args
			}
			code, _, all := k.cook("sh", c.recipe, args...)
			if code != c.code || !regexp.MustCompile(c.says).MatchString(all) {
				t.Fatalf("exit %d\n%s", code, all)
			}
			if mail := k.mail(); c.mail != "" && !slices.Contains(mail, c.mail) {
				t.Errorf("mail: %q", mail)
			}
			if c.withoutPrompts && k.prompts() > 0 {
				t.Errorf("%d prompts", k.prompts())
			}
			if c.again < 0 {
				return
			}
			for name := range c.files {
				must(t, os.Remove(filepath.Join(k.Dir, name)))
			}
			k.limit = ""
			if code, last, all := k.cook("sh", c.recipe, r.args...); code != c.again || !strings.Contains(last, c.afterwards) {
				t.Fatalf("again: exit %d\n%s", code, all)
			}
			if mail := k.mail(); len(slices.Compact(slices.Clone(mail))) != len(mail) && c.recipe != "pair.sh" {
				t.Errorf("sent twice: %q", mail)
			}
		})
	}
}

// docs/scripting.md names every script of the cookbook; each is tested and shorter than thirty lines.
func TestCookbookIsNamed(t *testing.T) {
	scripting, err1 := os.ReadFile(filepath.Join("..", "..", "docs", "scripting.md"))
	files, err2 := filepath.Glob(cookbook("*.sh"))
	if err := errors.Join(err1, err2); err != nil || len(files) != len(recipes) {
		t.Errorf("%d scripts, %d tested: %v", len(files), len(recipes), err)
	}
	for _, r := range recipes {
		text, err := os.ReadFile(cookbook(r.name))
		if n := strings.Count(string(text), "\n"); err != nil || n >= 30 {
			t.Errorf("%s has %d lines: %v", r.name, n, err)
		}
		if !strings.Contains(string(scripting), "| `"+r.name+" ") {
			t.Errorf("docs/scripting.md does not name %s", r.name)
		}
	}
}
