package mailbox

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// filesDir holds the content of attachments, each under the name of its SHA-256.
const filesDir = ".files"

// Attach stores content in the store's .files, durably, and describes it. Content that
// is there already is checked, not trusted.
func (s *Store) Attach(name string, content io.Reader) (wire.Attachment, error) {
	a := wire.Attachment{Name: name, MediaType: "application/octet-stream"}
	if err := s.root.MkdirAll(filesDir); err != nil {
		return a, err
	}
	temp := filesDir + "/." + string(wire.NewID()) + ".tmp"
	hash, in := sha256.New(), bufio.NewReader(content)
	err := s.root.CreateFrom(temp, func(out io.Writer) error {
		head, err := in.Peek(512)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if isText(head) {
			a.MediaType = "text/plain; charset=utf-8"
		}
		a.Size, err = io.Copy(io.MultiWriter(hash, out), in)
		return err
	})
	if err != nil {
		return a, err
	}
	defer s.root.Remove(temp)
	a.SHA256 = hex.EncodeToString(hash.Sum(nil))
	stored := filesDir + "/" + a.SHA256
	err = s.root.Link(temp, stored)
	if errors.Is(err, fs.ErrExist) {
		var whole bool
		if whole, err = s.verify(a); err == nil && !whole {
			// What lies there is not what its name says: out of the way.
			if err = s.root.Move(stored, stored+".damaged."+string(wire.NewID())); err == nil {
				err = s.root.Link(temp, stored)
			}
		}
	}
	if err != nil {
		return a, err
	}
	return a, errors.Join(s.root.Sync(filesDir), s.root.Sync("."))
}

// isText reports whether a file that begins so is text: UTF-8 without a NUL. A rune may
// be cut at the end.
func isText(head []byte) bool {
	for i := 0; i < utf8.UTFMax && i < len(head); i++ {
		if utf8.Valid(head[:len(head)-i]) {
			return bytes.IndexByte(head, 0) < 0
		}
	}
	return len(head) == 0
}

// verify reports whether the content of an attachment is what its hash says.
func (s *Store) verify(a wire.Attachment) (bool, error) {
	f, err := s.root.Open(filesDir + "/" + a.SHA256)
	if errors.Is(err, durable.ErrNotRegular) {
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

// Attachment opens the content of an attachment after checking its size and hash.
func (s *Store) Attachment(a wire.Attachment) (*os.File, error) {
	if !wire.IsSHA256(a.SHA256) {
		return nil, fmt.Errorf("attachment %q: no hash", a.Name)
	}
	whole, err := s.verify(a)
	switch {
	case absent(err):
		return nil, fmt.Errorf("attachment %q: its content is not here: %w", a.Name, ErrNotFound)
	case err != nil:
		return nil, err
	case !whole:
		return nil, fmt.Errorf("attachment %q: its content is damaged", a.Name)
	}
	return s.root.Open(filesDir + "/" + a.SHA256)
}
