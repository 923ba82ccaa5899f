// Package testtree makes directory trees for tests.
package testtree

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Make makes a temporary directory from lines: "root DIR" (a root with team main), "dir DIR", "repo DIR" (what git
// takes for its .git), "file PATH CONTENT", "link PATH TARGET", "chmod PATH" (writable by all) and "group PATH" (by the
// group). The path that it returns has no links.
func Make(t *testing.T, lines ...string) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(err)
	for _, line := range lines {
		w := strings.SplitN(line, " ", 3)
		path := filepath.Join(top, w[1])
		switch w[0] {
		case "root":
			must(os.MkdirAll(filepath.Join(path, "main"), 0o700))
			must(os.Chmod(path, 0o700))
			must(os.WriteFile(filepath.Join(path, "FORMAT"), []byte("3\n"), 0o600))
		case "dir":
			must(os.MkdirAll(path, 0o700))
		case "repo":
			must(os.MkdirAll(filepath.Join(path, "objects"), 0o700))
			must(os.MkdirAll(filepath.Join(path, "refs"), 0o700))
			must(os.WriteFile(filepath.Join(path, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
		case "file":
			must(os.MkdirAll(filepath.Dir(path), 0o700))
			must(os.WriteFile(path, []byte(w[2]), 0o600))
		case "link":
			NeedUnix(t)
			must(os.MkdirAll(filepath.Dir(path), 0o700))
			must(os.Symlink(w[2], path))
		case "chmod":
			NeedUnix(t)
			must(os.Chmod(path, 0o777))
		case "group":
			NeedUnix(t)
			must(os.Chmod(path, 0o770))
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	return top
}

// Memory makes a temporary directory in memory where there is one: thousands of files or syncs would slow down a disk.
func Memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "atm-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Short makes a temporary directory with a short path: that of a socket must be.
func Short(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "atm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// NeedUnix skips a test on Windows.
func NeedUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links and modes")
	}
}

// TrimRoot removes the temporary directory from texts.
func TrimRoot(top string, texts []string) []string {
	var out []string
	for _, s := range texts {
		out = append(out, filepath.ToSlash(strings.ReplaceAll(s, top+string(filepath.Separator), "")))
	}
	return out
}
