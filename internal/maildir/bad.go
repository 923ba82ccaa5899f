package maildir

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// maxName is the length in bytes to which a foreign file's name is cut. It leaves room for an id and .reason
// within the 255 bytes that file systems allow.
const maxName = 160

// CutName shortens a name, but keeps .json, which says how the file is parsed.
func CutName(name string) string {
	if len(name) <= maxName {
		return name
	}
	end := ""
	if IsJSON(name) {
		end = path.Ext(name)
	}
	return strings.ToValidUTF8(name[:maxName-len(end)], "") + end
}

// IsJSON reports whether a file is named as JSON is.
func IsJSON(name string) bool { return strings.EqualFold(path.Ext(name), ".json") }

// Settling is how long a file that another program writes must be unchanged before it counts as whole.
const Settling = time.Second

// SettlesAt returns when a file that does not change any more counts as whole; zero: it does.
func SettlesAt(info fs.FileInfo) (at time.Time) {
	if changed := info.ModTime(); time.Since(changed).Abs() < Settling {
		at = changed.Add(Settling)
	}
	return at
}

// MoveBadMessage moves a file that has a message's name but is not a message to bad, and reports whether it did. It does
// not move a file that is still being written.
func (b *Box) MoveBadMessage(d Folder, bad *BadError) bool {
	file := d.Dir + "/" + bad.Name
	if info, err := b.store.root.Lstat(file); err == nil && !SettlesAt(info).IsZero() {
		return false
	}
	return b.MoveToBad(file, bad.Name, bad.Reason) == nil
}

// MoveToBad moves a file or directory to bad, and writes the reason beside it. as is the name it gets there, if free.
func (b *Box) MoveToBad(file, as, reason string) error {
	root, dir := b.store.root, b.In("inbox/bad")
	if err := b.Mkdir(dir); err != nil {
		return err
	}
	if as = strings.TrimLeft(as, "."); as == "" {
		as = "unnamed"
	}
	other := CutName(as) + "." + string(wire.NewID())
	if len(as) > maxName || strings.HasSuffix(as, ".reason") {
		as = other
	}
	err := root.Move(file, dir+"/"+as)
	if errors.Is(err, fs.ErrExist) {
		as = other
		err = root.Move(file, dir+"/"+as)
	}
	if err == nil {
		// The reason is for people, so an error does not matter.
		root.Replace(dir+"/"+as+".reason", []byte(reason+"\n"), false)
	}
	return err
}
