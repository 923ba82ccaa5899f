package maildir

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
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

// MoveBadMessage moves a file that has a message's name but is not a message to bad, and reports whether it did. It does
// not move a file that is still being written.
func (b *Box) MoveBadMessage(d Folder, bad *BadError) bool {
	file := d.Dir + "/" + bad.Name
	if f, err := b.store.root.Open(file); err == nil {
		writing, _ := durable.BeingWritten(f)
		f.Close() // which also ends a lease
		if writing {
			return false
		}
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
