package rootdir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/testtree"
)

// gitIn runs git in dir without the configuration of the user who runs the test.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
	cmd.Env = environ(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func environ(t *testing.T) []string {
	return append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
}

// acceptedRoot makes a repository app with a root that is accepted.
func acceptedRoot(t *testing.T) (p Place, app string) {
	t.Helper()
	top := testtree.Make(t, "root app/.atm", "dir app/.atm/main/bob")
	app = filepath.Join(top, "app")
	gitIn(t, app, "init", "-q", "-b", "main")
	gitIn(t, app, "commit", "-q", "--allow-empty", "-m", "first")
	p = Place{Dir: app, State: filepath.Join(top, "state"), UID: os.Getuid(), Environ: environ(t)}
	must(t, Accept(p, filepath.Join(app, ".atm")))
	return p, app
}

// reason returns why nothing in the root may act; "": it may.
func reason(t *testing.T, p Place) string {
	t.Helper()
	f, _, err := Find(p)
	must(t, err)
	err = f.CheckAccepted(t.Context())
	if _, ok := errors.AsType[*UnacceptedError](err); err != nil && !ok {
		t.Errorf("%v is no *UnacceptedError", err)
	}
	return strings.ReplaceAll(errText(err), f.Path, "ROOT")
}

func is(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q\nwant %q", what, got, want)
	}
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
}

// A root acts as long as git tracks nothing in it: what git tracks it may write at any time.
func TestTracked(t *testing.T) {
	p, app := acceptedRoot(t)
	is(t, "untracked", reason(t, p), "")
	put(t, app, ".atm/main/team.toml", "mine")
	is(t, "team.toml is yours to edit", reason(t, p), "")
	put(t, app, ".atm/main/bob/x", "x")
	gitIn(t, app, "add", "-f", ".atm/main")
	is(t, "added", reason(t, p), "git tracks files in ROOT")
	must(t, Accept(p, filepath.Join(app, ".atm")))
	is(t, "nobody can accept it", reason(t, p), "git tracks files in ROOT")
	gitIn(t, app, "rm", "-q", "--cached", ".atm/main/bob/x")
	is(t, "one of them", reason(t, p), "git tracks files in ROOT")
	gitIn(t, app, "rm", "-q", "--cached", ".atm/main/team.toml")
	is(t, "nothing any more", reason(t, p), "")
}

// A named root is one like any other: a variable of the environment comes with a directory as easily as a root does. A
// program that opens its own needs no note, but what git or a backup has brought there is a stranger's to it, too.
func TestNamed(t *testing.T) {
	p, app := acceptedRoot(t)
	root := filepath.Join(app, ".atm")
	for _, named := range []Place{{Flag: root, State: p.State}, {Env: root, State: p.State}} {
		named.Environ, named.UID = p.Environ, p.UID
		is(t, "named", reason(t, named), "")
		put(t, app, ".atm/main/team.toml", "evil")
		gitIn(t, app, "add", "-f", ".atm/main")
		is(t, "named, tracked", reason(t, named), "git tracks files in ROOT")
		gitIn(t, app, "rm", "-q", "-f", ".atm/main/team.toml")
		must(t, os.MkdirAll(filepath.Join(root, "main"), 0o700))
		put(t, app, ".atm/"+RestoredFile, "")
		is(t, "named, restored", reason(t, named), "a backup was restored into ROOT, and nobody here has accepted it since")
		must(t, os.Remove(filepath.Join(root, RestoredFile)))
		named.State = filepath.Join(app, "other state")
		is(t, "named by another user", reason(t, named), "nobody here made or accepted ROOT; it may have come with a clone")
		named.State = ""
		is(t, "named without a home", reason(t, named), "there is no state directory, so nobody can be known to have made or accepted ROOT")
	}
	own, err := Own(root)
	must(t, err)
	must(t, own.CheckAccepted(t.Context()))
	put(t, app, ".atm/"+RestoredFile, "")
	is(t, "restored", reason(t, p), "a backup was restored into ROOT, and nobody here has accepted it since")
	if own.CheckAccepted(t.Context()) == nil {
		t.Error("a program's own root acts after a restore")
	}
	must(t, Accept(p, root))
	is(t, "accepted", reason(t, p), "")
	if _, err := os.Lstat(filepath.Join(root, RestoredFile)); err == nil {
		t.Error("the marker is still there")
	}
}

// A root that others own, or in which they may write, acts for nobody, also if it is named.
func TestOthersMayWrite(t *testing.T) {
	testtree.NeedUnix(t)
	p, app := acceptedRoot(t)
	root := filepath.Join(app, ".atm")
	named := Place{Flag: root, State: p.State, UID: p.UID, Environ: p.Environ}
	must(t, os.Chmod(filepath.Join(root, "main"), 0o777))
	is(t, "open to all", reason(t, named), "ROOT is not trusted: its team main is writable by everybody")
	must(t, os.Chmod(filepath.Join(root, "main"), 0o700))
	is(t, "closed again", reason(t, named), "")
	f, _, err := Find(named)
	must(t, err)
	f.place.UID++
	if err := f.CheckForeign(t.Context()); !errors.Is(err, ErrUntrusted) {
		t.Errorf("another user's: %v", err)
	}
}

// If git does not say what it tracks, nothing acts, and nobody can accept it. A root without a repository needs no git.
func TestUnknownContent(t *testing.T) {
	p, app := acceptedRoot(t)
	put(t, app, ".git/index", "torn")
	f, _, err := Find(p)
	must(t, err)
	e, _ := errors.AsType[*UnacceptedError](f.CheckAccepted(t.Context()))
	if e == nil || e.Cause == nil || !strings.HasSuffix(e.Error(), "; until it is, nothing in "+f.Path+" acts") {
		t.Errorf("%v", e)
	}
	must(t, os.RemoveAll(filepath.Join(app, ".git")))
	t.Setenv("PATH", app)
	is(t, "without a repository", reason(t, p), "")
}

// A root that is not accepted says which accepted one it hides.
func TestShadows(t *testing.T) {
	top := testtree.Make(t, "root .atm", "root a/.atm", "root a/b/.atm", "dir a/b/c")
	p := Place{Dir: filepath.Join(top, "a", "b", "c"), State: filepath.Join(top, "state"), UID: os.Getuid()}
	for _, step := range []struct{ accept, shadows string }{{"", ""}, {".atm", ".atm"}, {"a/.atm", "a/.atm"}, {"a/b/.atm", ""}} {
		if step.accept != "" {
			must(t, Accept(p, filepath.Join(top, step.accept)))
		}
		f, _, err := Find(p)
		must(t, err)
		is(t, "after "+step.accept, strings.TrimPrefix(f.Shadows, top+string(filepath.Separator)), filepath.FromSlash(step.shadows))
	}
}

// A root that was accepted and is gone is said to be gone; another one that is found instead is used with a warning.
func TestGone(t *testing.T) {
	top := testtree.Make(t, "root a/.atm", "root .atm", "dir a/b")
	p := Place{Dir: filepath.Join(top, "a", "b"), State: filepath.Join(top, "state"), UID: os.Getuid()}
	must(t, Accept(p, filepath.Join(top, "a", ".atm")))
	must(t, os.RemoveAll(filepath.Join(top, "a", ".atm")))
	f, skipped, err := Find(p)
	must(t, err)
	is(t, "found", f.Path, filepath.Join(top, ".atm"))
	if len(skipped) != 1 || !strings.Contains(skipped[0], "a/.atm is gone: ") || !strings.Contains(skipped[0], "; if it shall stay gone: rm ") {
		t.Errorf("%q", skipped)
	}
	must(t, os.RemoveAll(filepath.Join(top, ".atm")))
	named := p
	named.Env = filepath.Join(top, "a", ".atm")
	for _, p := range []Place{p, named} {
		_, _, err = Find(p)
		gone, _ := errors.AsType[*GoneError](err)
		if gone == nil || !errors.Is(err, ErrNoRoot) || gone.Path != named.Env {
			t.Errorf("%v", err)
		}
	}
	must(t, os.Remove(onlyNote(t, p)))
	_, _, err = Find(p)
	is(t, "forgotten", strings.ReplaceAll(errText(err), top, "TOP"), "no root found in "+filepath.Join("TOP", "a", "b")+" or above")
}

// A new root hides itself from what reads .gitignore; docker reads only .dockerignore.
func TestHidden(t *testing.T) {
	top := testtree.Make(t, "root old")
	root := filepath.Join(top, ".atm")
	_, err := Make(root)
	must(t, err)
	put(t, top, "old/.gitignore", "mine\n")
	must(t, errors.Join(Hide(root), Hide(filepath.Join(top, "old"))))
	for file, want := range map[string]string{".atm/.gitignore": "*\n", "old/.gitignore": "mine\n"} {
		data, err := os.ReadFile(filepath.Join(top, file))
		must(t, err)
		is(t, file, string(data), want)
	}
	sees := func() bool { _, isSeen := SeenByDocker(root); return isSeen }
	if sees() {
		t.Error("there is no Dockerfile")
	}
	put(t, top, "Dockerfile.dev", "FROM scratch\n")
	for ignored, want := range map[string]bool{
		"": true, "node_modules\n": true, "#.atm\n": true, ".atm\n": false, "/.atm/\r\n": false, "**/.atm": false, ".*": false,
		"*\n!src\n": false, "*\n!.atm\n": true, "!.atm\n**\n": false, "[\n": true,
	} {
		put(t, top, ".dockerignore", ignored)
		if got := sees(); got != want {
			t.Errorf("with %q docker sees the root: %v", ignored, got)
		}
	}
}
