package agentconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A setup is a user's home, a repository, and atm on the PATH.
type setup struct {
	*testing.T
	dir string
	Installer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	h := &setup{T: t, dir: dir}
	h.write("bin/atm", "#!/bin/sh\n")
	must(t, os.Chmod(h.at("bin/atm"), 0o755))
	h.write("repo/.atm/FORMAT", "1\n")
	if err := os.Mkdir(h.at("repo/.git"), 0o700); err != nil { // no git repository yet, and none around it counts
		t.Fatal(err)
	}
	h.Installer = Installer{
		Home: h.at("home"), Dir: h.at("repo"), State: h.at("state"), Self: h.at("bin/atm"), Root: h.at("repo/.atm"),
	}
	t.Setenv("PATH", h.at("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	h.write("home/.profile", "")
	return h
}

func (h *setup) at(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *setup) write(name, data string) {
	h.Helper()
	must(h, os.MkdirAll(filepath.Dir(h.at(name)), 0o700))
	must(h, os.WriteFile(h.at(name), []byte(data), 0o600))
}

// read returns a file's content, "(none)" if there is no file.
func (h *setup) read(name string) string {
	h.Helper()
	data, err := os.ReadFile(h.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	must(h, err)
	return string(data)
}

// tree returns the mode and content of every file below a directory, and the targets of links.
func (h *setup) tree(name string) map[string]string {
	h.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(h.at(name), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(h.dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && strings.HasPrefix(rel, "repo"+string(os.PathSeparator)+".git"):
		case d.IsDir():
			out[rel] = info.Mode().String()
		case info.Mode().Type() == fs.ModeSymlink:
			out[rel], _ = os.Readlink(path)
		default:
			data, _ := os.ReadFile(path)
			out[rel] = info.Mode().String() + " " + string(data)
		}
		return nil
	})
	must(h, err)
	return out
}

func (h *setup) same(what string, a, b map[string]string) {
	h.Helper()
	for k, v := range a {
		if w, ok := b[k]; !ok {
			h.Errorf("%s: %s is gone", what, k)
		} else if v != w {
			h.Errorf("%s: %s was\n%s\nand is\n%s", what, k, v, w)
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			h.Errorf("%s: %s is new:\n%s", what, k, v)
		}
	}
}

// edit installs a tool's part, or removes it.
func (h *setup) edit(r Request) *Report {
	h.Helper()
	rep, err := h.Edit(r)
	if err != nil {
		h.Fatalf("%+v: %v", r, err)
	}
	return rep
}
