package windows

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patches are what is changed in Go's library: file, old, new.
var patches = [][3]string{
	{"internal/syscall/windows/at_windows.go", "if TestDeleteatFallback {", "if true {"},
	{"internal/syscall/windows/zsyscall_windows.go", `"bcryptprimitives.dll"`, `"advapi32.dll"`},
	{"internal/syscall/windows/zsyscall_windows.go", `"ProcessPrng"`, `"SystemFunction036"`},
	{"runtime/os_windows.go", `'b', 'c', 'r', 'y', 'p', 't', 'p', 'r', 'i', 'm', 'i', 't', 'i', 'v', 'e', 's',`, `'a', 'd', 'v', 'a', 'p', 'i', '3', '2',`},
	{"runtime/os_windows.go", `"ProcessPrng\000"`, `"SystemFunction036\000"`},
}

// overlay writes the changed files, and says where they are in the form of go build -overlay.
func overlay(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for _, p := range patches {
		original := filepath.Join(strings.TrimSpace(string(root)), "src", p[0])
		changed := filepath.Join(dir, filepath.Base(p[0]))
		from := original
		if replace[original] != "" {
			from = changed
		}
		text, err := os.ReadFile(from)
		if err != nil || strings.Count(string(text), p[1]) != 1 {
			t.Fatalf("%s is not the file that is known: %v", original, err)
		}
		if err := os.WriteFile(changed, []byte(strings.Replace(string(text), p[1], p[2], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[original] = changed
	}
	text, _ := json.Marshal(map[string]any{"Replace": replace})
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// windows runs the program in a directory, below a home of its own.
type windows struct {
	*testing.T
	dir, programs string
	env           []string
}

func open(t *testing.T) *windows {
	w := &windows{T: t, dir: t.TempDir(), programs: t.TempDir(), env: os.Environ()}
	build := exec.Command("go", "build", "-o", w.programs, "../../../cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	switch {
	case runtime.GOOS == "windows":
		for _, home := range []string{"USERPROFILE", "APPDATA", "LOCALAPPDATA"} {
			w.env = append(w.env, home+"="+t.TempDir())
		}
	case os.Getenv("ATM_WINE") == "":
		t.Skip("make windows runs it")
	default:
		w.env = append(w.env, "WINEPREFIX="+t.TempDir(), "WINEDEBUG=-all")
		build.Args = append(build.Args[:2:2], append([]string{"-overlay", overlay(t)}, build.Args[2:]...)...)
		build.Env = append(build.Env, "GOOS=windows", "GOARCH=amd64")
		t.Cleanup(func() {
			end := exec.Command("wineserver", "-k", "-w") // it writes below the directories that are removed
			end.Env = w.env
			end.Run()
		})
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return w
}

func (w *windows) command(stdin string, args ...string) *exec.Cmd {
	line := append([]string{filepath.Join(w.programs, "atm.exe")}, args...)
	if runtime.GOOS != "windows" {
		line = append([]string{"wine"}, line...)
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = w.dir, w.env, strings.NewReader(stdin)
	return cmd
}

// atm runs the program, and wants a text in what it prints, which is returned.
func (w *windows) atm(want string, args ...string) string {
	w.Helper()
	return w.pipe("", want, args...)
}

func (w *windows) pipe(stdin, want string, args ...string) string {
	w.Helper()
	out, err := w.command(stdin, args...).CombinedOutput()
	if !strings.Contains(string(out), want) {
		w.Errorf("atm %q: %v, and no %q in\n%s", args, err, want, out)
	}
	return string(out)
}

func TestMail(t *testing.T) {
	w := open(t)
	w.atm("added alice, bob", "init", "alice", "bob")
	id, _, _ := strings.Cut(strings.TrimPrefix(w.atm("to bob", "send", "bob", "one", "--ack", "--as", "alice"), "sent "), " ")
	w.atm("one", "read", "--as", "bob")
	w.atm("awaits your ack: "+id, "read", "--as", "bob")
	w.atm("sent", "reply", id, "two", "--as", "bob")
	w.atm("two", "read", "--as", "alice")
	w.atm("acked", "ls", "--sent", "--as", "alice")

	w.atm(`no agent "carol"`, "send", "carol", "x", "--as", "alice")
	w.pipe("a text\nin lines\n", "to bob", "send", "bob", "-", "--as", "alice")
	w.atm(`a text\nin lines`, "read", "--as", "bob", "--json")
	if err := os.WriteFile(filepath.Join(w.dir, ".atm/main/bob/inbox/note.txt"), []byte("dropped"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // nothing tells there that nobody writes it any more
	w.atm("dropped", "read", "--as", "bob")
	w.atm("to bob", "send", "bob", "hosts", "--attach", "C:/windows/system32/drivers/etc/hosts", "--as", "alice")
	w.atm("1 attached", "read", "--as", "bob")

	w.atm("turn_started", "event", "turn_started", "--as", "bob")
	w.atm("busy", "team")
	w.atm("retired bob", "team", "retire", "bob")
	w.atm("bob is back", "team", "restore", "bob")
	w.atm("nothing is wrong", "doctor")
	w.atm("backed up", "backup", "b.tar")
	w.atm("restored", "restore", "b.tar", "--root", `C:\other`)
	w.atm("agents run on Linux", "run", "bob", "--detach", "--", "cmd")

	wait := w.command("", "read", "--wait", "60s", "--as", "bob")
	var out strings.Builder
	wait.Stdout = &out
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	w.atm("to bob", "send", "bob", "late", "--as", "alice")
	if err := wait.Wait(); err != nil || !strings.Contains(out.String(), "late") {
		t.Errorf("read --wait: %v\n%s", err, out.String())
	}
}
