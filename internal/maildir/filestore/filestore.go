// Package filestore keeps the content of attachments in a team's directory, in files named by their hash.
package filestore

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// Dir holds the content of attachments in files named by their SHA-256.
const Dir = ".files"

// Errors of Open.
var (
	ErrNoContent = errors.New("its content is missing") // in .files
	ErrDamaged   = errors.New("its content is damaged")
)

// Add stores content durably in .files and describes it.
func Add(dir *durable.Root, name string, content io.Reader) (wire.Attachment, error) {
	return AddOnce(dir, name, wire.NewID(), content)
}

// AddOnce is Add for one who may be killed and try again: only one caller at a time has that id, and a killed one's temp file
// is replaced.
func AddOnce(dir *durable.Root, name string, id wire.ID, content io.Reader) (wire.Attachment, error) {
	temp := Dir + "/." + string(id) + ".tmp"
	if err := cmp.Or(dir.MkdirAll(Dir), dir.Remove(temp)); err != nil {
		return wire.Attachment{}, err
	}
	a, err := describe(name, content, func(r io.Reader) error { return dir.CreateFrom(temp, r) })
	if err != nil {
		return a, err
	}
	return a, moveIn(dir, temp, a)
}

// ErrOtherContent says that content is not what its hash says.
var ErrOtherContent = errors.New("its content differs from its hash")

// AddKnown stores content of which the hash is known, unless it has another. Only one caller at a time may store the
// same: a killed one's temp file is replaced.
func AddKnown(dir *durable.Root, a wire.Attachment, content io.Reader) error {
	temp := Dir + "/." + a.SHA256 + ".tmp"
	if err := cmp.Or(dir.MkdirAll(Dir), dir.Remove(temp)); err != nil {
		return err
	}
	got, err := describe(a.Name, content, func(r io.Reader) error { return dir.CreateFrom(temp, r) })
	if err == nil && got.SHA256 != a.SHA256 {
		dir.Remove(temp)
		err = ErrOtherContent
	}
	if err != nil {
		return err
	}
	return moveIn(dir, temp, a)
}

// moveIn gives a temp file with the content of an attachment its name.
func moveIn(dir *durable.Root, temp string, a wire.Attachment) error {
	defer dir.Remove(temp) // a rename of one of two names of the same file to the other does nothing
	// No lock is needed: a file of this name is replaced by the same content.
	if err := dir.MoveOver(temp, Path(a)); err != nil {
		return err
	}
	return errors.Join(dir.Sync(Dir), dir.Sync("."))
}

// Path returns the path of an attachment's content below the team's directory.
func Path(a wire.Attachment) string { return Dir + "/" + a.SHA256 }

// describe describes content as an attachment of that name, while read reads it to its end.
func describe(name string, content io.Reader, read func(io.Reader) error) (wire.Attachment, error) {
	a := wire.Attachment{Name: name, MediaType: "application/octet-stream"}
	hash, in := sha256.New(), bufio.NewReaderSize(content, 64<<10)
	if head, _ := in.Peek(512); isText(head) { // the copy below returns the error again
		a.MediaType = "text/plain; charset=utf-8"
	}
	counted := &countingReader{Reader: in}
	err := read(io.TeeReader(counted, hash))
	a.Size, a.SHA256 = counted.n, hex.EncodeToString(hash.Sum(nil))
	return a, err
}

type countingReader struct {
	io.Reader
	n int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	return n, err
}

// isText reports whether the first bytes of a file are UTF-8 without a NUL. The last rune may be cut.
func isText(head []byte) bool {
	for cut := 1; cut < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); cut++ {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// Open opens the content of an attachment after it has checked size and hash.
func Open(dir *durable.Root, a wire.Attachment) (*os.File, error) {
	if !wire.IsSHA256(a.SHA256) {
		return nil, fmt.Errorf("attachment %q has no hash", a.Name)
	}
	f, err := dir.Open(Path(a))
	if durable.IsAbsent(err) {
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
