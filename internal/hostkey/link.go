package hostkey

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// A Link says that a root of this user calls another one by a name, which stands where addresses have a host. Mail goes
// between the two once the other one has a link back.
type Link struct {
	Name wire.Name `json:"name"`
	Root string    `json:"root"` // the other one's path, without symbolic links
}

// ErrNoLink says that a root has no such link.
var ErrNoLink = errors.New("there is no link")

// links is the directory of a root's links.
func (d Dir) links(root string) string {
	return filepath.Join(string(d), "links", fmt.Sprintf("%x", sha256.Sum256([]byte(root))))
}

// Links lists the links of the root at a path, sorted by name.
func (d Dir) Links(root string) (all []Link, errs error) {
	if d == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(d.links(root))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if _, bad := ParseHost(e.Name()); bad != nil {
			continue
		}
		var l Link
		file := filepath.Join(d.links(root), e.Name())
		data, err := durable.ReadRegular(file, 64<<10)
		if err == nil && (json.Unmarshal(data, &l) != nil || string(l.Name) != e.Name() || !filepath.IsAbs(l.Root)) {
			err = errors.New("damaged")
		}
		if err != nil {
			err = fmt.Errorf("link %s: %w; atm link --remove %[1]s removes it", e.Name(), err)
		}
		if errs = errors.Join(errs, err); err == nil {
			all = append(all, l)
		}
	}
	return all, errs
}

// AddLink makes a link of the root at a path.
func (d Dir) AddLink(root string, l Link) error {
	if d == "" {
		return errors.New("there is no configuration directory for links")
	}
	data, _ := json.Marshal(l)
	return durable.WritePrivate(filepath.Join(d.links(root), string(l.Name)), append(data, '\n'))
}

// RemoveLink removes a link of the root at a path.
func (d Dir) RemoveLink(root string, name wire.Name) error {
	if _, err := ParseHost(string(name)); err != nil {
		return err
	}
	return os.Remove(filepath.Join(d.links(root), string(name)))
}

// Back is the link of another root that leads to the root at a path, or ErrNoLink.
func (d Dir) Back(root string, l Link) (back Link, err error) {
	all, err := d.Links(l.Root)
	for _, back := range all {
		if back.Root == root {
			return back, nil
		}
	}
	if err == nil {
		err = ErrNoLink
	}
	return back, err
}
