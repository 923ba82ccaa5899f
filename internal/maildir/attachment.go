package maildir

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
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

// FilesDir holds the content of attachments in files named by their SHA-256.
const FilesDir = ".files"

// Errors of Attachment.
var (
	ErrNoContent = errors.New("its content is missing") // in .files
	ErrDamaged   = errors.New("its content is damaged")
)

// Attach stores content durably in .files and describes it.
func (s *Store) Attach(name string, content io.Reader) (wire.Attachment, error) {
	return s.copyToFiles(name, FilesDir+"/."+string(wire.NewID())+".tmp", content)
}

// ErrOtherContent says that content is not what its hash says.
var ErrOtherContent = errors.New("its content differs from its hash")

// AttachKnown stores content of which the hash is known, unless it has another. Only one caller at a time may store the
// same: a killed one's temp file is replaced.
func (s *Store) AttachKnown(a wire.Attachment, content io.Reader) error {
	temp := FilesDir + "/." + a.SHA256 + ".tmp"
	if err := cmp.Or(s.root.MkdirAll(FilesDir), s.root.Remove(temp)); err != nil {
		return err
	}
	got, err := describe(a.Name, content, func(r io.Reader) error { return s.root.CreateFrom(temp, r) })
	if err == nil && got.SHA256 != a.SHA256 {
		s.root.Remove(temp)
		err = ErrOtherContent
	}
	if err != nil {
		return err
	}
	return s.moveToFiles(temp, a)
}

// copyToFiles is Attach with the name of the temp file.
func (s *Store) copyToFiles(name, temp string, content io.Reader) (wire.Attachment, error) {
	if err := s.root.MkdirAll(FilesDir); err != nil {
		return wire.Attachment{}, err
	}
	a, err := describe(name, content, func(r io.Reader) error { return s.root.CreateFrom(temp, r) })
	if err != nil {
		return a, err
	}
	return a, s.moveToFiles(temp, a)
}

// moveToFiles gives a temp file with the content of an attachment its name.
func (s *Store) moveToFiles(temp string, a wire.Attachment) error {
	defer s.root.Remove(temp) // a rename of one of two names of the same file to the other does nothing
	// No lock is needed: a file of this name is replaced by the same content.
	if err := s.root.MoveOver(temp, fileOfAttachment(a)); err != nil {
		return err
	}
	return errors.Join(s.root.Sync(FilesDir), s.root.Sync("."))
}

func fileOfAttachment(a wire.Attachment) string { return FilesDir + "/" + a.SHA256 }

// attachDropped makes an attachment of a dropped file. If it is certain that no process is writing the file, the file
// itself gets a second name in .files, and nothing is copied. Otherwise it is copied, to the same temp file each time.
func (s *Store) attachDropped(ctx context.Context, name string, d *openDrop) (a wire.Attachment, err error) {
	temp := FilesDir + "/." + string(d.id) + ".tmp"
	wasTried, err := s.root.Exists(temp) // and its sync may have failed: see Adopt
	if err = cmp.Or(err, s.root.MkdirAll(FilesDir), s.root.Remove(temp)); err != nil {
		return a, err
	}
	if d.certain && !wasTried {
		a, err = describe(name, d.content(ctx), func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
		if err == nil && d.hasChanged() {
			err = errBeingWritten
		}
		if err != nil {
			return a, err
		}
		if stored, err := s.root.Lstat(fileOfAttachment(a)); err == nil && os.SameFile(stored, d.info) { // before a kill
			return a, errors.Join(s.root.Sync(FilesDir), s.root.Sync("."))
		}
		err = s.root.Adopt(d.File, d.path, temp)
		if err == nil {
			err = s.moveToFiles(temp, a)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return a, err
		}
	}
	return s.copyToFiles(name, temp, d.content(ctx))
}

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

// Attachment opens the content of an attachment after it has checked size and hash.
func (s *Store) Attachment(a wire.Attachment) (*os.File, error) {
	if !wire.IsSHA256(a.SHA256) {
		return nil, fmt.Errorf("attachment %q has no hash", a.Name)
	}
	f, err := s.root.Open(FilesDir + "/" + a.SHA256)
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
