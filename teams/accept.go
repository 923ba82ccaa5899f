package teams

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A note says that this user made or accepted a root. Each is a file of its
// own in the user's state directory, so that inits at the same time cannot
// lose each other's; never in the root, which a clone can carry.
//
//	<state>/roots/<sha256 of the path>.json
type note struct {
	Path string    `json:"path"`
	Dev  uint64    `json:"dev"`
	Ino  uint64    `json:"ino"`
	Born int64     `json:"born,omitempty"` // birth of the directory, Unix nanoseconds; 0 where the system does not tell
	At   time.Time `json:"at"`
}

// same reports whether both notes are about one directory. An inode number is
// given again, on ext4 to the very next directory, and a device's number may
// be another after a restart (btrfs, LVM): where both births are known they
// decide, else the device does.
func (n note) same(o note) bool {
	if n.Path != o.Path || n.Ino != o.Ino {
		return false
	}
	if n.Born != 0 && o.Born != 0 {
		return n.Born == o.Born
	}
	return n.Dev == o.Dev
}

// take makes a note about the root as it is now, and says where it is kept.
func (p Place) take(root string) (n note, file string, err error) {
	path, err := filepath.Abs(root)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return note{}, "", err
	}
	if n, err = identify(path); err != nil {
		return note{}, "", err
	}
	n.Path = strings.ToValidUTF8(path, "\uFFFD") // what JSON would make of it
	n.At = time.Now().UTC()
	sum := sha256.Sum256([]byte(path))
	return n, filepath.Join(p.State, "roots", hex.EncodeToString(sum[:])+".json"), nil
}

// Accept notes in the user's state directory that this user made or accepts
// the root. Again, it changes nothing.
func Accept(p Place, root string) error {
	if err := accept(p, root); err != nil {
		return fmt.Errorf("note that %s is yours: %w", shown(root), err)
	}
	return nil
}

func accept(p Place, root string) error {
	if p.State == "" {
		return errors.New("there is no state directory")
	}
	n, file, err := p.take(root)
	if err != nil {
		return err
	}
	if old, ok := p.readNote(file); ok && old.same(n) {
		return nil
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return replaceFile(file, append(data, '\n'))
}

// replaceFile writes file, mode 0600, whole or not at all.
func replaceFile(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".note-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after the rename: nothing there
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// Accepted reports whether this user made or accepted the root, and it is
// still that directory.
func Accepted(p Place, root string) bool {
	if p.State == "" {
		return false
	}
	n, file, err := p.take(root)
	if err != nil {
		return false
	}
	old, ok := p.readNote(file)
	return ok && old.same(n)
}

// readNote reads one note. What is torn, foreign, or open to others is none.
func (p Place) readNote(file string) (note, bool) {
	for _, path := range []string{filepath.Dir(file), file} {
		fi, err := os.Lstat(path)
		if err != nil || fi.Mode()&fs.ModeSymlink != 0 || distrust(fi, p.UID, true) != "" {
			return note{}, false
		}
	}
	data, err := readSmall(file)
	if err != nil {
		return note{}, false
	}
	var n note
	err = json.Unmarshal(data, &n)
	return n, err == nil && n.Path != ""
}

// UntrustedError is about a place that is not safe to make a root in.
type UntrustedError struct {
	Path string
	Why  string // as Shared says it
}

func (e *UntrustedError) Error() string {
	return shown(e.Path) + " is not to be trusted: " + e.Why
}

// Shared says why a root found by search is not trusted ("owned by uid 1001",
// "writable by everybody", "its team main is owned by uid 1001"), "" if it is.
// It looks at the directory itself and at those directly in it whose names do
// not begin with a dot. Being writable by a group is no reason here: in a root
// that this user accepted, it was their choice. A uid below 0 passes all.
func Shared(root string, uid int) string { return shared(root, uid, false) }

// shared is Shared; with group, being writable by a group is a reason too.
func shared(root string, uid int, group bool) string {
	if uid < 0 {
		return ""
	}
	fi, err := os.Stat(root)
	if err != nil {
		return "it cannot be looked at: " + reason(err)
	}
	if why := distrust(fi, uid, group); why != "" {
		return why
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "it cannot be listed: " + reason(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Type().IsRegular() {
			continue
		}
		// Not Lstat: what a link inside of the root leads to is a team as well.
		fi, err := os.Stat(filepath.Join(root, e.Name()))
		if err != nil || !fi.IsDir() {
			continue
		}
		if why := distrust(fi, uid, group); why != "" {
			if _, err := wire.ParseName(e.Name()); err != nil {
				return "its directory " + strconv.Quote(e.Name()) + " is " + why
			}
			return "its team " + e.Name() + " is " + why
		}
	}
	return ""
}

// distrust says why a file is not this user's alone.
func distrust(fi fs.FileInfo, uid int, group bool) string {
	if uid < 0 {
		return ""
	}
	if owner := ownerOf(fi); owner != uid {
		return "owned by uid " + strconv.Itoa(owner)
	}
	switch perm := fi.Mode().Perm(); {
	case perm&0o002 != 0:
		return "writable by everybody"
	case group && perm&0o020 != 0:
		return "writable by its group, and not accepted yet"
	}
	return ""
}

// reason is what the system said, without the path.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return err.Error()
}
