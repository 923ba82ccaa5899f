package mailbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// Attach stores content in the store's .files, durably, under the name of its
// hash, and describes it. Content that is there already is checked, not
// trusted.
func (s *Store) Attach(name string, content io.Reader) (wire.Attachment, error) {
	a := wire.Attachment{Name: name, MediaType: "application/octet-stream"}
	had, err := s.dir.Has(".files")
	if err != nil {
		return a, err
	}
	files, err := s.dir.Make(".files")
	if err != nil {
		return a, err
	}
	defer files.Close()
	if !had {
		if err := s.dir.Sync(); err != nil {
			return a, err
		}
	}
	d, err := files.Draft(".making." + string(wire.NewID()))
	if err != nil {
		return a, err
	}
	defer d.Close()
	hash := sha256.New()
	text := true
	buf := make([]byte, 64<<10)
	var carry []byte
	for {
		n, rerr := content.Read(buf)
		if n > 0 {
			hash.Write(buf[:n])
			a.Size += int64(n)
			if text {
				text, carry = plainText(append(carry, buf[:n]...))
			}
			if _, err := d.Write(buf[:n]); err != nil {
				return a, err
			}
		}
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			return a, fmt.Errorf("read %s: %w", name, rerr)
		}
	}
	if text && len(carry) == 0 {
		a.MediaType = "text/plain; charset=utf-8"
	}
	sum := hash.Sum(nil)
	a.SHA256 = hex.EncodeToString(sum[:])
	if err := d.Sync(); err != nil {
		return a, err
	}
	err = d.Link(files, a.SHA256)
	if errors.Is(err, fs.ErrExist) {
		if ok, e := verify(files, a); e == nil && !ok {
			// Whatever lies there is not what its name says: out of the way.
			if err = atomicfile.Move(files, a.SHA256, files, a.SHA256+".damaged."+string(wire.NewID())); err == nil {
				err = d.Link(files, a.SHA256)
			}
		} else {
			err = e
		}
	}
	if err != nil {
		return a, err
	}
	return a, files.Sync()
}

// plainText reports whether b is UTF-8 without NUL so far, and what is left of
// a rune that was cut.
func plainText(b []byte) (ok bool, rest []byte) {
	if bytes.IndexByte(b, 0) >= 0 {
		return false, nil
	}
	cut := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut = len(b) - i
			}
			break
		}
	}
	return utf8.Valid(b[:cut]), bytes.Clone(b[cut:])
}

func verify(files *atomicfile.Dir, a wire.Attachment) (bool, error) {
	f, err := files.Open(a.SHA256)
	if errors.Is(err, atomicfile.ErrNotRegular) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	return n == a.Size && hex.EncodeToString(hash.Sum(nil)) == a.SHA256, err
}

// Attachment opens the content of an attachment after checking its size and
// hash.
func (s *Store) Attachment(a wire.Attachment) (*os.File, error) {
	files, err := s.dir.Sub(".files")
	if atomicfile.Absent(err) {
		return nil, fmt.Errorf("attachment %q: its content is not here: %w", a.Name, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer files.Close()
	if !wire.IsSHA256(a.SHA256) {
		return nil, fmt.Errorf("attachment %q: no hash", a.Name)
	}
	ok, err := verify(files, a)
	if atomicfile.Absent(err) {
		return nil, fmt.Errorf("attachment %q: its content is not here: %w", a.Name, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("attachment %q: its content is damaged", a.Name)
	}
	return files.Open(a.SHA256)
}
