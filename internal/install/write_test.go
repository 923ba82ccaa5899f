package install

import (
	"errors"
	"strings"
	"testing"
)

// A change between reading and writing is noticed.
func TestMeanwhile(t *testing.T) {
	h := newHouse(t)
	h.write("home/.claude/settings.json", "{}\n")
	r := Request{Tool: "claude"}
	other := "{\"model\": \"other\"}\n"
	times := 0
	edit := func(s *sheet, pt part) error {
		if times++; times == 1 {
			h.write("home/.claude/settings.json", other)
		}
		return s.install(pt)
	}
	if _, err := h.do(r, edit); err != nil {
		t.Fatal(err)
	}
	if got := h.read("home/.claude/settings.json"); !strings.Contains(got, "\"model\": \"other\"") || !strings.Contains(got, "atm hook") {
		t.Errorf("somebody's edit or ours is lost:\n%s", got)
	}
	h.uninstall(r)
	if got := h.read("home/.claude/settings.json"); got != other {
		t.Errorf("uninstall left %q", got)
	}
	// Whoever writes all the time is let be.
	n := 0
	always := func(s *sheet, pt part) error {
		n++
		h.write("home/.claude/settings.json", other+strings.Repeat(" ", n))
		return s.install(pt)
	}
	if _, err := h.do(r, always); !errors.Is(err, errMeanwhile) || n != tries {
		t.Errorf("%v after %d times", err, n)
	}
	if got := h.read("home/.claude/settings.json"); got != other+strings.Repeat(" ", tries) {
		t.Errorf("it was written over: %q", got)
	}
	// A file that was made meanwhile is somebody else's.
	made := func(s *sheet, pt part) error {
		err := s.install(pt)
		h.write("home/.gemini/settings.json", "{}")
		return err
	}
	if _, err := h.once(Request{Tool: "gemini"}, made); !errors.Is(err, errMeanwhile) {
		t.Errorf("made meanwhile: %v", err)
	}
	if h.read("home/.gemini/settings.json") != "{}" || h.read("home/.gemini/policies/atm.toml") != "(none)" {
		t.Error("half of an install is left")
	}
}

// When a later file cannot be written, the earlier ones are as they were.
func TestAllOrNothing(t *testing.T) {
	h := newHouse(t)
	h.write("home/.codex/hooks.json", "{}\n")
	before := h.tree("home")
	edit := func(s *sheet, pt part) error {
		err := s.install(pt)
		if strings.HasSuffix(s.path, "config.toml") {
			s.existed = true // it is not, and so counts as changed meanwhile
		}
		return err
	}
	if _, err := h.once(Request{Tool: "codex"}, edit); !errors.Is(err, errMeanwhile) {
		t.Fatal(err)
	}
	h.same("failed", before, h.tree("home"))
}
