package agentconfig

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func (h *setup) link(to, name string) {
	h.Helper()
	must(h, os.MkdirAll(filepath.Dir(h.at(name)), 0o700))
	if err := os.Symlink(to, h.at(name)); err != nil {
		h.Skip(err)
	}
}

// A tracked file is refused by name, whatever path leads to it, and nothing is written.
func TestTracked(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Request
		make func(*setup)
		want string
	}{
		{"the local file", Request{Tool: "claude", Local: true}, func(h *setup) {
			h.write("repo/.claude/settings.local.json", "{}\n")
			h.git("repo", "add", ".claude")
		}, "repo/.claude/settings.local.json"},
		{"added, not committed, and then removed", Request{Tool: "gemini", Local: true}, func(h *setup) {
			h.write("repo/.gemini/settings.json", "{}\n")
			h.git("repo", "add", ".gemini")
			os.Remove(h.at("repo/.gemini/settings.json"))
		}, "repo/.gemini/settings.json"},
		{"a later file of several", Request{Tool: "codex", Local: true}, func(h *setup) {
			h.write("repo/.codex/config.toml", "model = \"x\"\n")
			h.git("repo", "add", ".codex")
		}, "repo/.codex/config.toml"},
		{"in a linked worktree", Request{Tool: "claude", Local: true}, func(h *setup) {
			h.git("repo", "commit", "-q", "--allow-empty", "-m", "x")
			h.git("repo", "worktree", "add", "-q", h.at("tree"))
			h.write("tree/.claude/settings.local.json", "{}\n")
			h.git("tree", "add", ".claude")
			h.Dir = h.at("tree")
		}, "tree/.claude/settings.local.json"},
		{"the home is a repository", Request{Tool: "claude"}, func(h *setup) {
			h.git("home", "init", "-q", ".")
			h.write("home/.claude/settings.json", "{}\n")
			h.git("home", "add", ".claude")
		}, "home/.claude/settings.json"},
		{"a link into a dotfiles repository", Request{Tool: "claude"}, func(h *setup) {
			h.write("dotfiles/claude.json", "{}\n")
			h.git("dotfiles", "init", "-q", ".")
			h.git("dotfiles", "add", ".")
			h.link(h.at("dotfiles/claude.json"), "home/.claude/settings.json")
		}, "dotfiles/claude.json"},
		{"the directory is such a link", Request{Tool: "codex"}, func(h *setup) {
			h.write("dotfiles/codex/config.toml", "")
			h.git("dotfiles", "init", "-q", ".")
			h.git("dotfiles", "add", ".")
			h.link("../dotfiles/codex", "home/.codex")
		}, "dotfiles/codex/config.toml"},
		{"the link itself is tracked", Request{Tool: "claude", Local: true}, func(h *setup) {
			h.write("elsewhere/x.json", "{}\n")
			h.link("../../elsewhere/x.json", "repo/.claude/settings.local.json")
			h.git("repo", "add", ".claude")
		}, "repo/.claude/settings.local.json"},
		{"an index that says nothing", Request{Tool: "claude", Local: true}, func(h *setup) {
			h.write("repo/.git/index", "what?")
		}, "find out whether"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newSetup(t)
			h.git("repo", "init", "-q", ".")
			c.make(h)
			before := h.tree(".")
			for what, do := range map[string]func(Request) (*Report, error){"install": h.Install, "uninstall": h.Uninstall} {
				_, err := do(c.r)
				if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), c.want) || !errors.Is(err, ErrTracked) && c.want != "find out whether" {
					t.Errorf("%s: %v, want %s", what, err, c.want)
				}
			}
			h.same("refused", before, h.tree("."))
		})
	}
}

// An untracked link is followed, and stays a link; the file keeps its mode.
func TestLinks(t *testing.T) {
	h := newSetup(t)
	h.write("dotfiles/claude/settings.json", "{}\n")
	h.git("dotfiles", "init", "-q", ".")
	must(t, os.Chmod(h.at("dotfiles/claude/settings.json"), 0o640))
	h.link("../dotfiles/claude", "home/.claude")
	before := h.tree(".")
	h.install(Request{Tool: "claude"})
	if fi, err := os.Lstat(h.at("home/.claude")); err != nil || fi.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is gone: %v %v", fi, err)
	}
	fi, err := os.Stat(h.at("dotfiles/claude/settings.json"))
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v %v", fi, err)
	}
	if !strings.Contains(h.read("dotfiles/claude/settings.json"), "atm hook claude") {
		t.Error("it was not written through")
	}
	h.uninstall(Request{Tool: "claude"})
	h.same("uninstall", before, h.tree("."))

	h.link("nowhere", "home/.codex/hooks.json")
	if _, err := h.Install(Request{Tool: "codex"}); err == nil || !strings.Contains(err.Error(), "broken link") {
		t.Errorf("a broken link: %v", err)
	}
}

// With Local nothing is written through a link that leads out of the worktree, wherever it leads and whether git tracks
// it; one that stays inside is followed, and what it leads to is hidden from git.
func TestLocalLinks(t *testing.T) {
	for _, tool := range Tools() {
		for _, isTracked := range []bool{false, true} {
			h := newSetup(t)
			h.git("repo", "init", "-q", ".")
			h.git("repo", "config", "core.excludesFile", os.DevNull)
			h.write("elsewhere/x", "")
			h.write("home/.claude/settings.json", "{}\n")
			h.link("../elsewhere", "repo/."+tool)
			if isTracked {
				h.git("repo", "add", "."+tool)
			}
			before := h.tree(".")
			for what, do := range map[string]func(Request) (*Report, error){"install": h.Install, "uninstall": h.Uninstall} {
				_, err := do(Request{Tool: tool, Local: true})
				if err == nil || !errors.Is(err, ErrLeadsOut) && !errors.Is(err, ErrTracked) || !strings.Contains(err.Error(), h.at("elsewhere")) {
					t.Errorf("%s %s: %v", tool, what, err)
				}
			}
			h.same("refused", before, h.tree("."))
			if damage, _, err := h.Damage(tool, true); damage != "" || err != nil {
				t.Errorf("%s: %s %v", tool, damage, err)
			}
		}
	}
	h := newSetup(t)
	h.git("repo", "init", "-q", ".")
	h.git("repo", "config", "core.excludesFile", os.DevNull)
	h.write("repo/conf/x", "")
	h.link("conf", "repo/.claude")
	before := h.tree(".")
	h.install(Request{Tool: "claude", Local: true})
	out, err := exec.Command("git", "-C", h.at("repo"), "status", "--porcelain", "--untracked-files=all").CombinedOutput()
	if err != nil || strings.Contains(string(out), "settings.local.json") {
		t.Errorf("git sees %s %v", out, err)
	}
	h.uninstall(Request{Tool: "claude", Local: true})
	h.same("uninstall", before, h.tree("."))
}

// All worktrees share the exclude file.
func TestWorktreesShareTheExcludeFile(t *testing.T) {
	h := newSetup(t)
	h.git("repo", "init", "-q", ".")
	h.git("repo", "config", "core.excludesFile", os.DevNull)
	h.git("repo", "commit", "-q", "--allow-empty", "-m", "x")
	h.git("repo", "worktree", "add", "-q", h.at("tree"))
	exclude := h.read("repo/.git/info/exclude")
	h.write("repo/sub/dir/x", "")
	main, linked := h.Installer, h.Installer
	main.Dir, linked.Dir = h.at("repo/sub/dir"), h.at("tree")
	r := Request{Tool: "claude", Local: true, Agent: "bob"}
	for _, p := range []Installer{main, linked} {
		if _, err := p.Install(r); err != nil {
			t.Fatal(err)
		}
	}
	hidden := func(dir string) {
		t.Helper()
		out, err := exec.Command("git", "-C", h.at(dir), "status", "--porcelain", "--untracked-files=all").CombinedOutput()
		if err != nil || strings.Contains(string(out), ".claude") {
			t.Errorf("git in %s sees %s %v", dir, out, err)
		}
	}
	hidden("repo")
	hidden("tree")
	if h.read("repo/sub/dir/.claude/settings.local.json") != "(none)" || h.read("repo/.claude/settings.local.json") == "(none)" {
		t.Error("the file belongs at the top of the worktree")
	}
	if _, err := main.Uninstall(r); err != nil {
		t.Fatal(err)
	}
	hidden("tree")
	if _, err := linked.Uninstall(r); err != nil {
		t.Fatal(err)
	}
	if got := h.read("repo/.git/info/exclude"); got != exclude {
		t.Errorf("the exclude file was\n%s\nand is\n%s", exclude, got)
	}
}
