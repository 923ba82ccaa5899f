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

// A name always means the same id, to whoever asks, however many at once; what it answers
// and whom it is for are part of it.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t, "alice", "bob")
	alice := s.Box("alice")
	var mu sync.Mutex
	ids, news := map[wire.ID]bool{}, 0
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			key := &IdempotencyKey{Name: "job/1", To: []string{"bob@main"}}
			known, err := alice.Once(key)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[key.ID] = true
			news += count(!known)
		})
	}
	all.Wait()
	if len(ids) != 1 || news != 1 {
		t.Fatalf("%d ids, new for %d", len(ids), news)
	}
	for _, other := range []*IdempotencyKey{
		{Name: "job/2", To: []string{"bob@main"}},
		{Name: "job/1", To: []string{"carol@main"}},
		{Name: "job/1", To: []string{"bob@main", "carol@main"}},
		{Name: "job/1", To: []string{"bob@main"}, Re: past},
	} {
		if known, err := alice.Once(other); known || err != nil || ids[other.ID] {
			t.Errorf("%+v: known %v, %v", other, known, err)
		}
	}
	theirs := &IdempotencyKey{Name: "job/1", To: []string{"bob@main"}}
	if known, err := s.Box("bob").Once(theirs); known || err != nil || ids[theirs.ID] {
		t.Errorf("another sender's: known %v, %v", known, err)
	}
	for _, name := range []string{"", " ", "a\nb", "\xff", strings.Repeat("x", 201)} {
		if _, err := alice.Once(&IdempotencyKey{Name: name}); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	// A file that is not what it should be is an error: another id would send twice.
	files, _ := filepath.Glob(filepath.Join(alice.Path(), "sent/once/*.json"))
	if len(files) != 5 {
		t.Fatal(files)
	}
	for _, text := range []string{"", "{", `{"name":"y","id":"` + string(past) + `"}`, `{"name":"job/2","id":"../x"}`} {
		for _, f := range files {
			write(t, f, text)
		}
		if _, err := alice.Once(&IdempotencyKey{Name: "job/2", To: []string{"bob@main"}}); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for about, c := range map[string]struct{ content, media string }{
		"text":       {"hello\n", "text/plain; charset=utf-8"},
		"nothing":    {"", "text/plain; charset=utf-8"},
		"runes":      {"x" + strings.Repeat("é😀", 5_000), "text/plain; charset=utf-8"},
		"a NUL":      {"a\x00", "application/octet-stream"},
		"a bad byte": {"caf\xe9 au lait", "application/octet-stream"},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.content), iotest.HalfReader(strings.NewReader(c.content)), iotest.OneByteReader(strings.NewReader(c.content))} {
			a, err := s.Attach("x", r)
			if err != nil || a.Size != int64(len(c.content)) || a.MediaType != c.media {
				t.Fatalf("%s: %+v, %v", about, a, err)
			}
			if got, err := content(s, a); err != nil || got != c.content {
				t.Errorf("%s: %d bytes back, %v", about, len(got), err)
			}
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a, err := s.Attach("x", strings.NewReader("the same at once"))
			if got, e := content(s, a); err != nil || e != nil || got != "the same at once" {
				t.Error(got, err, e)
			}
		})
	}
	all.Wait()
	for _, n := range filesIn(t, s.root.Join(".files")) {
		if !wire.IsSHA256(n) {
			t.Errorf("left: %s", n)
		}
	}
}

// content is the content of an attachment.
func content(s *Store, a wire.Attachment) (string, error) {
	f, err := s.Attachment(a)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

// Content that is there is checked, not trusted: damaged, it is put out of the way when
// it comes again, and refused when it is asked for.
func TestDamagedAttachment(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a, err := s.Attach("x", strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	path := s.root.Join(".files/" + a.SHA256)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "content")
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
		if _, err := content(s, a); err == nil {
			t.Errorf("%s: opened", about)
		}
		if _, err := s.Attach("x", strings.NewReader("content")); err != nil {
			t.Errorf("%s: %v", about, err)
		}
		if got, err := content(s, a); err != nil || got != "content" {
			t.Errorf("%s: %q, %v", about, got, err)
		}
	}
	for _, hash := range []string{"", "../../secret", strings.Repeat("a", 64), strings.ToUpper(a.SHA256)} {
		if _, err := content(s, wire.Attachment{Name: "x", SHA256: hash, Size: 7}); err == nil {
			t.Errorf("%q: opened", hash)
		}
	}
	a.Size++
	if _, err := content(s, a); err == nil {
		t.Error("another size: opened")
	}
	broken := errors.New("broken")
	if _, err := s.Attach("x", io.MultiReader(strings.NewReader("part"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
}
