package mailbox

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// FilesDir holds the content of attachments in files named by their SHA-256.
const FilesDir = ".files"

// Errors of Attachment.
var (
	ErrNoContent = errors.New("its content is missing") // in .files
	ErrDamaged   = errors.New("its content is damaged")
)

// Attach stores content durably in .files and describes it.
func (s *Store) Attach(name string, content io.Reader) (wire.Attachment, error) {
	a := wire.Attachment{Name: name, MediaType: "application/octet-stream"}
	if err := s.root.MkdirAll(FilesDir); err != nil {
		return a, err
	}
	temp := FilesDir + "/." + string(wire.NewID()) + ".tmp"
	hash, in := sha256.New(), bufio.NewReader(content)
	if head, _ := in.Peek(512); isText(head) { // the copy below returns the error again
		a.MediaType = "text/plain; charset=utf-8"
	}
	if err := s.root.CreateFrom(temp, io.TeeReader(in, hash)); err != nil {
		return a, err
	}
	defer s.root.Remove(temp)
	info, err := s.root.Lstat(temp)
	if err != nil {
		return a, err
	}
	a.Size = info.Size()
	a.SHA256 = hex.EncodeToString(hash.Sum(nil))
	stored := FilesDir + "/" + a.SHA256
	// No lock is needed: a file of this name is replaced by the same content.
	if err := s.root.MoveOver(temp, stored); err != nil {
		return a, err
	}
	return a, errors.Join(s.root.Sync(FilesDir), s.root.Sync("."))
}

// isText reports whether the first bytes of a file are UTF-8 without a NUL. The last rune may be cut.
func isText(head []byte) bool {
	for cut := 1; cut < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); cut++ {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// Attachment opens the content of an attachment after it has checked size and hash.
func (s *Store) Attachment(a wire.Attachment) (*os.File, error) {
	if !wire.IsSHA256(a.SHA256) {
		return nil, fmt.Errorf("attachment %q has no hash", a.Name)
	}
	f, err := s.root.Open(FilesDir + "/" + a.SHA256)
	if absent(err) {
		err = ErrNoContent
	}
	hash, size := sha256.New(), int64(0)
	if err == nil {
		size, err = io.Copy(hash, f)
	}
	if err == nil && (size != a.Size || hex.EncodeToString(hash.Sum(nil)) != a.SHA256) {
		err = ErrDamaged
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close() // nil too
		return nil, fmt.Errorf("attachment %q: %w", a.Name, err)
	}
	return f, nil
}
