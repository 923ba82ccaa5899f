package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// processes are the cases of the command, built as it is installed. The
// reference is the process of an empty Go program and what no way leads around.
func (b *bench) processes() []*Case {
	cases := []*Case{{
		Name: "`atm send`", Against: "empty Go program + raw delivery", Goal: Goal{Time: 1.35}, Open: openSend,
	}}
	for _, verb := range []string{"ls", "read"} {
		for _, n := range b.Sizes {
			cases = append(cases, &Case{
				Name: fmt.Sprintf("`atm %s --limit 10`, %s unread", verb, count(n)), Against: "empty Go program + listing the names",
				Goal: Goal{Time: 1.5}, Open: func(b *bench) (cell, error) { return openLook(b, verb, n) },
			})
		}
	}
	return cases
}

// searching is a search through everything.
func (b *bench) searching() []*Case {
	n := b.Sizes[2]
	return []*Case{{
		Name: fmt.Sprintf("`atm search`, %s messages", count(n)), Against: "reading every file", Rounds: 3,
		Open: func(b *bench) (cell, error) { return openSearch(b, n) },
	}}
}

// program builds a program once, as the Makefile does, and installs it.
func (b *bench) program(name, what string) (string, error) {
	if p := b.programs[name]; p != "" {
		return p, nil
	}
	fmt.Fprintf(b.progress, "building %s\n", name)
	p := filepath.Join(b.ground.path, name)
	built := p + ".built"
	cmd := exec.CommandContext(b.ctx, "go", append(append([]string{"build", "-o", built}, b.Build...), what)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", what, err, out)
	}
	text, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	b.programs[name] = p
	b.texts[p] = text
	return p, b.install(p)
}

// install writes a program as `make install` does: at one go, which leaves it in
// the page cache in pieces of up to 2 MiB. What the linker wrote, or what was
// read from the disk again since, lies there in single pages, and everything
// starts a sixth later from there.
func (b *bench) install(p string) error {
	f, err := os.OpenFile(p+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	_, err = f.Write(b.texts[p])
	if err == nil {
		err = f.Sync() // no later sync is to have this to do
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(p+".new", p)
}

// installed has a cell begin with the programs newly installed. Between two
// rounds a machine may have taken their pages for something else, or because
// nobody used them: whether it did would be chance.
func (b *bench) installed(c cell) cell {
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		for p := range b.texts {
			if err := b.install(p); err != nil {
				return 0, 0, err
			}
		}
		return c(d)
	}
}

// empty builds the empty Go program.
func (b *bench) empty() (string, error) {
	src := filepath.Join(b.ground.path, "empty.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return "", err
	}
	return b.program("empty", src)
}

func (b *bench) atm() (string, error) {
	return b.program("atm", "github.com/agentteammail/atm/cmd/atm")
}

// env is the environment of the processes.
func (b *bench) env(r *root, me string) []string {
	return []string{"ATM_ROOT=" + r.path, "ATM_AGENT=" + me, "HOME=" + b.ground.path}
}

// process is one process from start to end; its output goes to /dev/null.
func (b *bench) process(env []string, argv ...string) single {
	return func() (time.Duration, error) { return b.run(env, b.null, argv...) }
}

// run is one process that reads in.
func (b *bench) run(env []string, in *os.File, argv ...string) (time.Duration, error) {
	began := time.Now()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: env, Files: []*os.File{in, b.null, b.null}})
	if err != nil {
		return 0, err
	}
	state, err := p.Wait()
	took := time.Since(began)
	if err == nil && !state.Success() {
		err = fmt.Errorf("%s: %v", strings.Join(argv, " "), state)
	}
	return took, err
}

// and is one after the other.
func (s single) and(t single) single {
	return func() (time.Duration, error) {
		a, err := s()
		if err != nil {
			return 0, err
		}
		b, err := t()
		return a + b, err
	}
}

func timed(f func() error) single {
	return func() (time.Duration, error) {
		began := time.Now()
		err := f()
		return time.Since(began), err
	}
}

func openSend(b *bench) (cell, error) {
	empty, err := b.empty()
	if err != nil {
		return nil, err
	}
	atm, err := b.atm()
	if err != nil {
		return nil, err
	}
	return b.fresh("send", 1, []wire.Name{"alice", "bob"}, func(r *root) cell {
		env := b.env(r, "alice")
		once := timed(func() error { _, err := r.raws[0].deliver(); return err })
		measure := b.installed(b.singles(b.process(env, atm, "send", "bob", string(text())), b.process(env, empty).and(once)))
		return func(d time.Duration) (time.Duration, time.Duration, error) {
			if err := b.used(r, "bob"); err != nil {
				return 0, 0, err
			}
			return measure(d)
		}
	}), nil
}

// used makes a mailbox one that has been read in before: its event log is long.
func (b *bench) used(r *root, member wire.Name) error {
	if err := r.fill(member, 100); err != nil {
		return err
	}
	_, err := r.Box(member).Read(b.ctx, mailbox.ReadOptions{}, func(batch mailbox.Batch) (int, error) {
		return len(batch.Items), nil
	})
	return err
}

func openLook(b *bench, verb string, n int) (cell, error) {
	root, err := b.mailboxOf(n)
	if err != nil {
		return nil, err
	}
	empty, err := b.empty()
	if err != nil {
		return nil, err
	}
	atm, err := b.atm()
	if err != nil {
		return nil, err
	}
	env := b.env(root, "bob")
	if err := shows(env, min(n, 10), atm, "ls", "--limit", "10"); err != nil {
		return nil, err
	}
	look := b.process(env, atm, verb, "--limit", "10")
	if verb == "read" {
		marks := look
		look = func() (time.Duration, error) {
			took, err := marks()
			if err != nil {
				return 0, err
			}
			return took, root.unread(min(n, 10))
		}
	}
	names := timed(func() error { return listNames(root.inbox("bob", "new")) })
	return b.installed(b.singles(look, b.process(env, empty).and(names))), nil
}

// shows makes sure that a command prints at least so many lines.
func shows(env []string, lines int, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	out, err := cmd.Output()
	if err == nil && bytes.Count(out, []byte{'\n'}) < lines {
		err = fmt.Errorf("printed %q", out)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return nil
}

func listNames(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Readdirnames(-1)
	return err
}

// unread puts what bob has just read back into new, and makes sure that it was
// so many messages.
func (r *root) unread(n int) error {
	done, err := filepath.Glob(filepath.Join(r.inbox("bob", "done"), "*", "*.json"))
	if err != nil {
		return err
	}
	if len(done) != n {
		return fmt.Errorf("atm read marked %d messages, not %d", len(done), n)
	}
	for _, from := range done {
		if err := os.Rename(from, filepath.Join(r.inbox("bob", "new"), filepath.Base(from))); err != nil {
			return err
		}
	}
	return nil
}

func openSearch(b *bench, n int) (cell, error) {
	root, err := b.mailboxOf(n)
	if err != nil {
		return nil, err
	}
	atm, err := b.atm()
	if err != nil {
		return nil, err
	}
	env := b.env(root, "bob")
	if err := shows(env, 10, atm, "search", needle); err != nil {
		return nil, err
	}
	all := timed(func() error { return readAll(root.inbox("bob", "new")) })
	ours := b.process(env, atm, "search", needle)
	return func(time.Duration) (time.Duration, time.Duration, error) {
		// Whoever came first would read the files from the disk where the machine has
		// let go of them since the last round.
		if _, err := all(); err != nil {
			return 0, 0, err
		}
		o, err := ours()
		if err != nil {
			return 0, 0, err
		}
		r, err := all()
		return o, r, err
	}, nil
}

// readAll reads the files of a directory one after the other.
func readAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	for _, n := range names {
		if err != nil {
			break
		}
		_, err = os.ReadFile(filepath.Join(dir, n))
	}
	return err
}
