package mailbox

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// maxName is what is kept of a foreign file's name, in bytes: room for an id, .reason and what
// durable.Root.Replace adds while it writes, within the 255 that file systems allow.
const maxName = 160

// cutName shortens a name, and leaves its .json, which says how the file is understood.
func cutName(name string) string {
	if len(name) <= maxName {
		return name
	}
	end := ""
	if isJSON(name) {
		end = path.Ext(name)
	}
	return strings.ToValidUTF8(name[:maxName-len(end)], "") + end
}

func isJSON(name string) bool { return strings.EqualFold(path.Ext(name), ".json") }

// setAsideBad moves a file that lies under a message's name in a place, and is no message, to bad, and
// reports whether it did. A file that somebody is still writing is left alone.
func (b *Box) setAsideBad(p place, bad *BadError) bool {
	file := p.dir + "/" + bad.Name
	if f, err := b.store.root.Open(file); err == nil {
		writing, _ := beingWritten(f)
		f.Close() // which also lets go of a lease
		if writing {
			return false
		}
	}
	return b.setAside(file, bad.Name, bad.Reason) == nil
}

// setAside moves an entry to bad, under a name, with the reason beside it.
func (b *Box) setAside(file, as, reason string) error {
	root, dir := b.store.root, b.in("inbox/bad")
	if err := b.mkdir(dir); err != nil {
		return err
	}
	if as = strings.TrimLeft(as, "."); as == "" {
		as = "unnamed"
	}
	other := cutName(as) + "." + string(wire.NewID())
	if len(as) > maxName || strings.HasSuffix(as, ".reason") {
		as = other
	}
	err := root.Move(file, dir+"/"+as)
	if errors.Is(err, fs.ErrExist) {
		as = other
		err = root.Move(file, dir+"/"+as)
	}
	if err == nil {
		// The reason is for people; the file is safe without it.
		root.Replace(dir+"/"+as+".reason", []byte(reason+"\n"), false)
	}
	return err
}

// BadFile is a file that was set aside.
type BadFile struct {
	Name, Reason string
	Size         int64
}

func (b *Box) badNames() (bad []string, err error) {
	names, err := b.store.root.Names(b.in("inbox/bad"))
	for _, name := range names {
		if !strings.HasSuffix(name, ".reason") && name[0] != '.' {
			bad = append(bad, name)
		}
	}
	return bad, err
}

// BadFiles lists what was set aside.
func (b *Box) BadFiles() (out []BadFile, err error) {
	names, err := b.badNames()
	for _, name := range names {
		file := b.in("inbox/bad", name)
		f := BadFile{Name: name, Reason: "no reason recorded"}
		if info, err := b.store.root.Lstat(file); err == nil {
			f.Size = info.Size()
		}
		if why, err := b.store.root.ReadFile(file+".reason", 4096); err == nil {
			f.Reason = strings.TrimSpace(string(why))
		}
		out = append(out, f)
	}
	return out, err
}
