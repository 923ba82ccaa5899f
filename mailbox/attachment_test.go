package mailbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/agentteammail/atm/wire"
)

func TestAttach(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	for about, c := range map[string]struct{ content, media string }{
		"text":            {"hello\n", "text/plain; charset=utf-8"},
		"nothing":         {"", "text/plain; charset=utf-8"},
		"runes":           {strings.Repeat("é😀", 50_000), "text/plain; charset=utf-8"},
		"a NUL":           {"a\x00", "application/octet-stream"},
		"a cut rune":      {"caf\xc3", "application/octet-stream"},
		"a late bad byte": {strings.Repeat("x", 200_000) + "\xff", "application/octet-stream"},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.content), iotest.HalfReader(strings.NewReader(c.content)), iotest.OneByteReader(strings.NewReader(c.content[:min(len(c.content), 2000)]))} {
			a, err := s.Attach("x", r)
			if err != nil {
				t.Fatal(err)
			}
			if a.Size != int64(len(c.content)) && a.Size != 2000 || a.MediaType != c.media && a.Size != 2000 {
				t.Errorf("%s: %+v", about, a)
			}
			f, err := s.Attachment(a)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(f)
			f.Close()
			if err != nil || int64(len(got)) != a.Size || !strings.HasPrefix(c.content, string(got)) {
				t.Errorf("%s: %d bytes back, %v", about, len(got), err)
			}
		}
	}
	for _, n := range filesIn(t, filepath.Join(teamPath(s), ".files"), nil) {
		if !wire.IsSHA256(n) {
			t.Errorf("left: %s", n)
		}
	}
}

// Content that is there is checked, not trusted: damaged, it is put out of the
// way when it comes again, and refused when it is asked for.
func TestDamagedAttachment(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	a, err := s.Attach("x", strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(teamPath(s), ".files", a.SHA256)
	secret := filepath.Join(t.TempDir(), "secret")
	os.WriteFile(secret, []byte("content"), 0o600)
	for about, damage := range map[string]func() error{
		"other bytes": func() error { return os.WriteFile(path, []byte("cOntent"), 0o600) },
		"cut":         func() error { return os.Truncate(path, 3) },
		"longer":      func() error { return os.WriteFile(path, []byte("content and more"), 0o600) },
		"a link":      func() error { return errors.Join(os.Remove(path), os.Symlink(secret, path)) },
		"a directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if f, err := s.Attachment(a); err == nil {
			f.Close()
			t.Errorf("%s: opened", about)
		}
		if _, err := s.Attach("x", strings.NewReader("content")); err != nil {
			t.Errorf("%s: %v", about, err)
		}
		if f, err := s.Attachment(a); err != nil {
			t.Errorf("%s: %v", about, err)
		} else {
			f.Close()
		}
	}
	for _, hash := range []string{"", "../../secret", strings.Repeat("a", 64), strings.ToUpper(a.SHA256)} {
		if f, err := s.Attachment(wire.Attachment{Name: "x", SHA256: hash, Size: 7}); err == nil {
			f.Close()
			t.Errorf("%q: opened", hash)
		}
	}
	wrong := a
	wrong.Size++
	if _, err := s.Attachment(wrong); err == nil {
		t.Error("another size: opened")
	}
	broken := errors.New("broken")
	if _, err := s.Attach("x", io.MultiReader(strings.NewReader("part"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestAttachTheSameAtOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				a, err := s.Attach("x", strings.NewReader("content"))
				if err != nil {
					t.Error(err)
					continue
				}
				if f, err := s.Attachment(a); err != nil {
					t.Error(err)
				} else {
					f.Close()
				}
			}
		})
	}
	all.Wait()
	if files := filesIn(t, filepath.Join(teamPath(s), ".files"), nil); len(files) != 1 {
		t.Error(files)
	}
}
