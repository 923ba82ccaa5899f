package packaging

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/testteam"
)

func TestMain(m *testing.M) {
	testteam.ClearEnviron()
	os.Exit(m.Run())
}

// root is a directory with nothing in it but dpkg's own lists.
type root struct {
	*testing.T
	dir  string
	home string
}

func (r *root) run(name string, args ...string) string {
	r.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = r.home
	cmd.Env = append(os.Environ(), "HOME="+r.home, "XDG_STATE_HOME="+r.home+"/state", "ATM_AGENT=alice",
		"PATH="+filepath.Join(r.dir, "usr/bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (r *root) atm(args ...string) string {
	r.Helper()
	return r.run(filepath.Join(r.dir, "usr/bin/atm"), args...)
}

func (r *root) dpkg(args ...string) {
	r.Helper()
	r.run("dpkg", append([]string{"--root=" + r.dir, "--force-not-root", "--force-bad-path", "--log=" + os.DevNull}, args...)...)
}

// files lists what is in the root, without dpkg's lists.
func (r *root) files() (files []string) {
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(r.dir, path)
		if name == "var/lib/dpkg" {
			return fs.SkipDir
		}
		files = append(files, name)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return files
}

func (r *root) read(name string) string {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err == nil && strings.HasSuffix(name, ".gz") {
		var unpacked io.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(unpacked)
		}
	}
	if err != nil {
		r.Fatal(err)
	}
	return string(data)
}

func TestDeb(t *testing.T) {
	dist := os.Getenv("ATM_DIST")
	if _, err := exec.LookPath("dpkg"); err != nil || dist == "" {
		t.Skip("make dist-test builds the package; it needs dpkg")
	}
	packages, _ := filepath.Glob(dist + "/*.deb")
	if len(packages) != 1 {
		t.Fatalf("one package is wanted in %s, not %q", dist, packages)
	}
	r := &root{t, t.TempDir(), t.TempDir()}
	if err := os.MkdirAll(filepath.Join(r.dir, "var/lib/dpkg/info"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := r.files()

	r.dpkg("--install", packages[0])
	programs, _ := filepath.Glob("../../atm*")
	for _, program := range programs {
		if name := "usr/libexec/atm/" + filepath.Base(program); !slices.Contains(r.files(), name) {
			t.Errorf("%s is not in the package", name)
		}
	}
	version := "v" + strings.ReplaceAll(strings.TrimSpace(r.run("dpkg-deb", "--field", packages[0], "Version")), "~", "-")
	here, _ := os.Getwd()
	commit := strings.TrimSpace(r.run("git", "-C", here, "rev-parse", "HEAD"))
	if got := r.atm("version"); !strings.HasPrefix(got, "atm "+version+" (commit "+commit[:12]+", go1.") {
		t.Errorf("atm version says %q; the package is %s of %s", got, version, commit)
	}
	if page := r.read("usr/share/man/man1/atm.1.gz"); page != r.atm("help", "--man") || !strings.Contains(page, strings.ReplaceAll(version, "-", `\-`)) {
		t.Errorf("the manual page is another one: %.200s", page)
	}
	for shell, file := range map[string]string{
		"bash": "bash-completion/completions/atm", "zsh": "zsh/vendor-completions/_atm", "fish": "fish/vendor_completions.d/atm.fish",
	} {
		if r.read("usr/share/"+file) != r.atm("completion", shell) {
			t.Errorf("the completion for %s is another one", shell)
		}
	}
	if license, _ := os.ReadFile("../../../LICENSE"); r.read("usr/share/doc/atm/copyright") != string(license) {
		t.Error("the licence is another one")
	}

	// A session: mail, and the programs that atm finds behind the link.
	r.atm("init", "alice", "bob")
	r.atm("send", "bob", "hello")
	if got := r.atm("read", "--as", "bob"); !strings.Contains(got, "hello") {
		t.Errorf("bob reads %q", got)
	}
	r.atm("web", "--export", "pages")
	r.atm("run", "bob", "--detach", "--", "cat")
	if got := r.atm("stop", "bob"); !strings.Contains(got, "bob") {
		t.Errorf("atm stop says %q", got)
	}

	// What agents' hooks start is the link, which stays the same when the package is replaced.
	r.atm("install", "claude")
	if settings, _ := os.ReadFile(filepath.Join(r.home, ".claude/settings.json")); !bytes.Contains(settings, []byte(r.dir+"/usr/bin/atm")) {
		t.Errorf("the hooks start another program: %s", settings)
	}

	r.dpkg("--purge", "atm")
	if left := r.files(); !slices.Equal(left, before) {
		t.Errorf("after the removal there is %q; before the installation there was %q", left, before)
	}
}
