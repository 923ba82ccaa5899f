package rootdir

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
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

func (p Place) noteOf(root string) (n note, file string, err error) {
	path, err := filepath.EvalSymlinks(root)
	if err == nil && p.State == "" {
		err = errors.New("there is no state directory")
	}
	if err != nil {
		return n, "", err
	}
	n.Path = strings.ToValidUTF8(path, "\uFFFD") // as encoding/json writes it
	n.Ino, n.Born, err = identify(path)
	return n, filepath.Join(p.State, "roots", fmt.Sprintf("%x.json", sha256.Sum256([]byte(path)))), err
}

// Accept records in the user's state directory that this user made or accepts the root. It is idempotent.
func Accept(p Place, root string) error {
	if accepted(p, root) {
		return nil
	}
	// In a container, the first change of a directory of the image gives it another birth time. This changes nothing.
	os.Chown(root, -1, -1)
	n, file, err := p.noteOf(root)
	if err == nil {
		data, _ := json.Marshal(n)
		err = durable.WritePrivate(file, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record %s as yours: %w", root, err)
	}
	return nil
}

// accepted reports whether this user made or accepted the root, and it is still the same directory. A note that is
// torn or too large, or that others own or may write, does not count.
func accepted(p Place, root string) bool {
	n, file, err := p.noteOf(root)
	if err != nil {
		return false
	}
	for _, path := range []string{filepath.Dir(file), file} {
		info, err := os.Lstat(path)
		isTooLarge := err == nil && !info.IsDir() && info.Size() > 64<<10
		if err != nil || info.Mode()&fs.ModeSymlink != 0 || isTooLarge || distrust(info, p.UID, true) != "" {
			return false
		}
	}
	var saved note
	data, err := durable.ReadRegular(file, 64<<10)
	return err == nil && json.Unmarshal(data, &saved) == nil && saved.isSame(n)
}

// DistrustReason returns why a root found by search is not trusted, as in "owned by uid 1001" or "its team main is
// writable by everybody"; "" if it is. It checks the directory and the directories in it whose names do not begin with
// a dot. With group, write permission for the group is a reason too; an accepted root may have it. A uid below 0 skips
// these checks.
func DistrustReason(root string, uid int, group bool) string {
	why, err := distrustReason(root, uid, group)
	if err != nil {
		return "it cannot be examined: " + err.Error()
	}
	return why
}

// distrustReason is DistrustReason with the error that kept it from examining a root that is trusted so far.
func distrustReason(root string, uid int, group bool) (why string, err error) {
	if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "it is a symbolic link, which counts only if you name it", nil
	}
	info, err := os.Stat(root)
	if err != nil {
		return "", err
	}
	if why := distrust(info, uid, group); why != "" {
		return why, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		// Not Lstat: a link in the root may point to a team.
		info, err := os.Stat(filepath.Join(root, e.Name()))
		if err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if why := distrust(info, uid, group); why != "" {
			return "its team " + e.Name() + " is " + why, nil
		}
	}
	return "", nil
}

func distrust(info fs.FileInfo, uid int, group bool) string {
	owner, perm := durable.Owner(info), info.Mode().Perm()
	switch {
	case uid < 0:
		return ""
	case owner == nil:
		return "owned by nobody known"
	case *owner != uid:
		return fmt.Sprintf("owned by uid %d", *owner)
	case perm&0o002 != 0:
		return "writable by everybody"
	case group && perm&0o020 != 0:
		return "writable by its group and not accepted yet"
	}
	return ""
}
