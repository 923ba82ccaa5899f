package packaging

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/testteam"
)

func TestMain(m *testing.M) {
	testteam.ClearEnviron()
	os.Exit(m.Run())
}

// A release is what goreleaser has made.
type release struct {
	*testing.T
	dist            string
	Version, Commit string
}

func openRelease(t *testing.T) *release {
	t.Helper()
	r := &release{T: t, dist: os.Getenv("ATM_DIST")}
	if r.dist == "" {
		t.Skip("make dist-test and make dist-check build what is tested here")
	}
	data, err := os.ReadFile(filepath.Join(r.dist, "metadata.json"))
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// file returns the path of the one file of a form, "" if the release was made without.
func (r *release) file(glob string) string {
	r.Helper()
	files, _ := filepath.Glob(filepath.Join(r.dist, glob))
	if len(files) > 1 {
		r.Fatalf("there are several of %s: %q", glob, files)
	}
	return slices.Concat(files, []string{""})[0]
}

// need skips the test without a program.
func (r *release) need(program string) {
	r.Helper()
	if _, err := exec.LookPath(program); err != nil {
		r.Skip(program, " is not here")
	}
}

// A tree is a directory in which a package is installed, or was unpacked.
type tree struct {
	*release
	dir  string
	link string // the atm that people start
	home string
}

func (r *release) tree(link string) *tree {
	t := &tree{release: r, dir: r.TempDir(), home: r.TempDir()}
	t.link = filepath.Join(t.dir, link)
	return t
}

func (t *tree) run(name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.home
	cmd.Env = append(t.env(), "PATH="+filepath.Dir(t.link)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (t *tree) env() []string {
	return append(os.Environ(), "HOME="+t.home, "XDG_STATE_HOME="+t.home+"/state", "ATM_AGENT=me")
}

func (t *tree) atm(args ...string) string {
	t.Helper()
	return t.run(t.link, args...)
}

// files lists what is in the tree, without the lists of package managers.
func (t *tree) files() (files []string) {
	err := filepath.WalkDir(t.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(t.dir, path)
		if name == "var" {
			return fs.SkipDir
		}
		files = append(files, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (t *tree) read(name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(t.dir, name))
	if err == nil && strings.HasSuffix(name, ".gz") {
		var unpacked io.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(unpacked)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// check uses what is in the tree. programs is where atm's programs are, the others are the names of files.
func (t *tree) check(programs, page, license string, completions map[string]string) {
	t.Helper()
	sources, _ := filepath.Glob("../../atm*")
	for _, source := range sources {
		if name := filepath.Join(programs, filepath.Base(source)); !slices.Contains(t.files(), name) {
			t.Errorf("%s is missing", name)
		}
	}
	version := "v" + t.Version
	if got := t.atm("version"); !strings.HasPrefix(got, "atm "+version+" (commit "+t.Commit[:12]+", go1.") {
		t.Errorf("atm version says %q; this is %s of %s", got, version, t.Commit)
	}
	if page := t.read(page); page != t.atm("help", "--man") || !strings.Contains(page, strings.ReplaceAll(version, "-", `\-`)) {
		t.Errorf("the manual page is another one: %.200s", page)
	}
	for shell, file := range completions {
		if t.read(file) != t.atm("completion", shell) {
			t.Errorf("the completion for %s is another one", shell)
		}
	}
	if want, _ := os.ReadFile("../../../LICENSE"); t.read(license) != string(want) {
		t.Error("the licence is another one")
	}

	// A session: mail, and the programs that atm finds beside itself.
	t.atm("init", "alice", "bob", "me")
	t.atm("send", "bob", "hello")
	if got := t.atm("read", "--as", "bob"); !strings.Contains(got, "hello") {
		t.Errorf("bob reads %q", got)
	}
	t.atm("mcp") // which ends with its input
	t.atm("run", "bob", "--detach", "--", "cat")
	if got := t.atm("stop", "bob"); !strings.Contains(got, "bob") {
		t.Errorf("atm stop says %q", got)
	}

	// What agents' hooks start stays the same when the package is replaced.
	t.atm("install", "opencode")
	if plugin, _ := os.ReadFile(filepath.Join(t.home, ".config/opencode/plugins/atm.js")); !bytes.Contains(plugin, []byte(t.link)) {
		t.Errorf("the plugin starts another program than %s: %s", t.link, plugin)
	}
}

// checkPackage is check for the paths of a distribution's package.
func (t *tree) checkPackage(zsh string) {
	t.Helper()
	t.check("usr/libexec/atm", "usr/share/man/man1/atm.1.gz", "usr/share/doc/atm/copyright", map[string]string{
		"bash": "usr/share/bash-completion/completions/atm", "zsh": "usr/share/zsh/" + zsh + "/_atm",
		"fish": "usr/share/fish/vendor_completions.d/atm.fish",
	})
}

// checkRemoved compares the tree with what was in it before.
func (t *tree) checkRemoved(before []string) {
	t.Helper()
	if left := t.files(); !slices.Equal(left, before) {
		t.Errorf("after the removal there is %q; before the installation there was %q", left, before)
	}
}

func TestDeb(t *testing.T) {
	r := openRelease(t)
	r.need("dpkg")
	root := r.tree("usr/bin/atm")
	if err := os.MkdirAll(filepath.Join(root.dir, "var/lib/dpkg/info"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root.dir, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		t.Helper()
		root.run("dpkg", append([]string{"--root=" + root.dir, "--force-not-root", "--force-bad-path", "--log=" + os.DevNull}, args...)...)
	}
	before := root.files()
	dpkg("--install", r.file("*_"+runtime.GOARCH+".deb"))
	root.checkPackage("vendor-completions")
	dpkg("--purge", "atm")
	root.checkRemoved(before)
}

func TestRPM(t *testing.T) {
	r := openRelease(t)
	r.need("rpm")
	if os.Getuid() != 0 {
		t.Skip("rpm goes into the empty root, which needs root")
	}
	root := r.tree("usr/bin/atm")
	rpm := func(args ...string) {
		t.Helper()
		root.run("rpm", append([]string{"--root=" + root.dir, "--dbpath=/var/lib/rpm", "--nodeps"}, args...)...)
	}
	before := root.files()
	rpm("--install", r.file("*."+machine()+".rpm"))
	root.checkPackage("site-functions")
	rpm("--erase", "atm")
	// Nobody owns the directories of a system, so rpm leaves them.
	left := slices.DeleteFunc(root.files(), func(name string) bool {
		info, err := os.Lstat(filepath.Join(root.dir, name))
		return err == nil && info.IsDir()
	})
	if len(left) > 0 {
		t.Errorf("after the removal there is %q; before the installation there was %q", left, before)
	}
}

// An apk is a tar of the files, behind one of what apk wants to know.
func TestAPK(t *testing.T) {
	r := openRelease(t)
	root := r.tree("usr/bin/atm")
	root.run("tar", "-xzf", r.file("*_"+machine()+".apk"), "-C", root.dir, "--warning=no-unknown-keyword")
	root.checkPackage("site-functions")
	info := "\n" + root.read(".PKGINFO")
	if !strings.Contains(info, "\npkgname = atm\n") || !strings.Contains(info, "\narch = "+machine()+"\n") {
		t.Errorf("apk is told:\n%s", info)
	}
}

func machine() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

func TestArchive(t *testing.T) {
	r := openRelease(t)
	root := r.tree("atm/atm")
	root.unpack()
	root.check("atm", "atm/man/man1/atm.1", "atm/LICENSE", map[string]string{
		"bash": "atm/completions/atm.bash", "zsh": "atm/completions/atm.zsh", "fish": "atm/completions/atm.fish",
	})
}

func (t *tree) unpack() {
	t.Helper()
	t.run("tar", "-xzf", t.file("atm_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"), "-C", t.dir)
}

// TestFormula does what Homebrew does with the formula: it reads it, and installs what it names for this machine.
func TestFormula(t *testing.T) {
	r := openRelease(t)
	formula, err := os.ReadFile(filepath.Join(r.dist, "homebrew/Formula/atm.rb"))
	if err != nil {
		t.Fatal(err)
	}
	checkDownloads(r, string(formula), `url "`, `sha256 "`)
	if strings.Count(string(formula), `url "`) < 1 {
		t.Errorf("the formula downloads nothing:\n%s", formula)
	}
	r.need("ruby")
	root := r.tree("prefix/bin/atm")
	root.unpack()
	script := filepath.Join(root.home, "brew.rb")
	if err := os.WriteFile(script, []byte(brew), 0o644); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join(r.dist, "homebrew/Formula/atm.rb"))
	if err != nil {
		t.Fatal(err)
	}
	root.run("ruby", script, path, filepath.Join(root.dir, "atm"), filepath.Join(root.dir, "prefix"))
	root.check("prefix/libexec", "prefix/share/man/man1/atm.1", "atm/LICENSE", map[string]string{
		"bash": "prefix/etc/bash_completion.d/atm", "zsh": "prefix/share/zsh/site-functions/_atm",
		"fish": "prefix/share/fish/vendor_completions.d/atm.fish",
	})
}

// brew.rb FORMULA UNPACKED PREFIX: as much of Homebrew as the formula uses. It runs install and test.
const brew = `
require "fileutils"
require "pathname"
class Pathname
  def install(*what)
    mkpath
    what.flatten.each do |w|
      w = {w => File.basename(w)} unless w.is_a? Hash
      w.each { |from, to| raise "#{from} is missing" unless File.exist? from; FileUtils.mv from, self/to }
    end
  end
  def install_symlink(*what) = (mkpath; what.each { |w| FileUtils.ln_s w, self/File.basename(w) })
end
class Formula
  PREFIX = Pathname.new(ARGV[2])
  def self.method_missing(*) = yield_if(block_given?) { yield }
  def self.yield_if(given) = given ? yield : nil
  def self.test(&block) = @@test = block
  def self.version(value = nil) = value ? @@version = value : @@version
  def version = @@version
  def bin = PREFIX/"bin"
  def libexec = PREFIX/"libexec"
  def man1 = PREFIX/"share/man/man1"
  def bash_completion = PREFIX/"etc/bash_completion.d"
  def zsh_completion = PREFIX/"share/zsh/site-functions"
  def fish_completion = PREFIX/"share/fish/vendor_completions.d"
  def shell_output(command) = %x(#{command}).tap { raise command unless $?.success? }
  def assert_match(part, whole) = whole.include?(part) || raise("#{part} is not in #{whole}")
  def run_test = instance_eval(&@@test)
end
module Hardware
  module CPU
    def self.method_missing(name, *) = name.to_s.match?(/64|` + "`" + `/) ? true : false
    def self.intel? = RUBY_PLATFORM.include?("x86_64")
    def self.arm? = !intel?
    def self.is_64_bit? = true
  end
end
load ARGV[0]
Dir.chdir ARGV[1]
formula = Atm.new
formula.install
formula.run_test
`

// checkDownloads compares the addresses and sums in a text with the files of the release.
func checkDownloads(r *release, text, url, sha256 string) {
	r.Helper()
	for _, part := range strings.Split(text, url)[1:] {
		address, rest, _ := strings.Cut(part, `"`)
		want := homepage + "/releases/download/"
		name := filepath.Base(address)
		if !strings.HasPrefix(address, want) {
			r.Errorf("%s is not below %s", address, want)
		}
		data, err := os.ReadFile(filepath.Join(r.dist, name))
		if err != nil {
			r.Error(err)
			continue
		}
		_, rest, _ = strings.Cut(rest, sha256)
		if got, _, _ := strings.Cut(rest, `"`); got != sum(data) {
			r.Errorf("%s: the sum is %s, not %q", name, sum(data), got)
		}
	}
}

func TestScoop(t *testing.T) {
	r := openRelease(t)
	data, err := os.ReadFile(filepath.Join(r.dist, "scoop/bucket/atm.json"))
	if os.IsNotExist(err) {
		t.Skip("the release was made without Windows")
	}
	var manifest struct {
		Version, License, Homepage, Description string
		Architecture                            map[string]struct {
			URL, Hash string
			Bin       []string
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Version != r.Version || manifest.License == "" || manifest.Homepage == "" || manifest.Description == "" {
		t.Errorf("the manifest lacks something: %s", data)
	}
	checkDownloads(r, string(data), `"url": "`, `"hash": "`)
	for _, arch := range []string{"64bit", "arm64"} {
		a := manifest.Architecture[arch]
		if a.URL == "" || !slices.Contains(a.Bin, "atm/atm.exe") {
			t.Errorf("for %s there is %+v", arch, a)
		}
	}
}
