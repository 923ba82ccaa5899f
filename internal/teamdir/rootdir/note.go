package rootdir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// A note records that this user made or accepted a root. Each note is a file of its own, so that concurrent inits lose
// none, and is never kept in the root, which may come with a clone.
type note struct {
	Path string `json:"path"`
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born,omitempty"` // when the directory was made, Unix nanoseconds; 0: unknown
}

// isSame reports whether a saved note is about the directory of another. ext4 reuses an inode number for the very next
// directory, so the birth times are compared too if the saved one is known.
func (n note) isSame(o note) bool {
	return n.Path == o.Path && n.Ino == o.Ino && (n.Born == o.Born || n.Born == 0)
}

// noteFile is the path of the note about a root, whose path has no symbolic links.
func (p Place) noteFile(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(p.State, "roots", hex.EncodeToString(sum[:])+".json")
}

func (p Place) noteOf(root string) (n note, file string, err error) {
	if p.State == "" {
		return n, "", ErrNoState
	}
	n.Path = strings.ToValidUTF8(root, "\uFFFD") // as encoding/json writes it
	n.Ino, n.Born, err = identify(root)
	return n, p.noteFile(root), err
}

const maxNote = 64 << 10 // bytes

// note notes that this user made or accepted a root.
func (p Place) note(root string) error {
	if p.noted(root) {
		return nil
	}
	// In a container, the first change of a directory of the image gives it another birth time. This changes nothing.
	os.Chown(root, -1, -1)
	n, file, err := p.noteOf(root)
	if err != nil {
		return err
	}
	data, _ := json.Marshal(n)
	return durable.WritePrivate(file, append(data, '\n'))
}

// noted reports whether this user has a note about the root, and it is still the same directory. A note that is torn or
// too large, or that others own or may write, does not count.
func (p Place) noted(root string) bool {
	n, file, err := p.noteOf(root)
	if err != nil {
		return false
	}
	data, err := p.readOwn(file)
	if err != nil {
		return false
	}
	o, err := wire.ReadObject(data) // each command does this: a decoder for the type would cost it more than the rest
	if err != nil {
		return false
	}
	ino, inoErr := strconv.ParseUint(string(o.Get("ino")), 10, 64)
	born, bornErr := strconv.ParseInt(cmp.Or(string(o.Get("born")), "0"), 10, 64)
	return inoErr == nil && bornErr == nil && note{o.Text("path"), ino, born}.isSame(n)
}

// readOwn reads a file about a root, if only this user can have written it.
func (p Place) readOwn(file string) ([]byte, error) {
	for _, path := range []string{filepath.Dir(file), file} {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		isTooLarge := !info.IsDir() && info.Size() > maxNote
		if info.Mode()&fs.ModeSymlink != 0 || isTooLarge || distrust(info, p.UID, true).Reason != "" {
			return nil, fmt.Errorf("%s is not this user's own", path)
		}
	}
	return durable.ReadRegular(file, maxNote)
}

// StateFile is the path of a file in the user's state directory that belongs to a subject in this root.
func (f Found) StateFile(kind, subject, suffix string) (string, error) {
	if f.place.State == "" {
		return "", ErrNoState
	}
	sum := sha256.Sum256([]byte(f.Path + "\x00" + subject))
	return filepath.Join(f.place.State, kind, fmt.Sprintf("%x%s", sum[:8], suffix)), nil
}
