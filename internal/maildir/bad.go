package maildir

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// maxName is the length in bytes to which a foreign file's name is cut. It leaves room for an id and .reason
// within the 255 bytes that file systems allow.
const maxName = 160

// cutName shortens a name, but keeps .json, which says how the file is parsed.
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

// moveBadMessage moves a file that has a message's name but is not a message to bad, and reports whether it did. It does
// not move a file that is still being written.
func (b *Box) moveBadMessage(d folder, bad *BadError) bool {
	file := d.dir + "/" + bad.Name
	if f, err := b.store.root.Open(file); err == nil {
		writing, _ := beingWritten(f)
		f.Close() // which also ends a lease
		if writing {
			return false
		}
	}
	return b.moveToBad(file, bad.Name, bad.Reason) == nil
}

// moveToBad moves a file or directory to bad, and writes the reason beside it. as is the name it gets there, if free.
func (b *Box) moveToBad(file, as, reason string) error {
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
		// The reason is for people, so an error does not matter.
		root.Replace(dir+"/"+as+".reason", []byte(reason+"\n"), false)
	}
	return err
}

// BadFile is a file that is not taken for mail.
type BadFile struct {
	Name, Reason string
	Size         int64
	Dir          string // inbox/bad, or where it is left: inbox or inbox/new
}

// badNames lists the files in bad.
func (b *Box) badNames() (bad []string, err error) {
	names, err := b.store.root.Names(b.in("inbox/bad"))
	for _, name := range names {
		if !strings.HasSuffix(name, ".reason") && name[0] != '.' {
			bad = append(bad, name)
		}
	}
	return bad, err
}

// countBad counts the files that BadFiles lists, after Ingest.
func (b *Box) countBad(in Ingested) int {
	bad, _ := b.badNames() // doctor reports a directory that cannot be read
	return len(bad) + in.Left
}

// BadFiles lists the files in bad, and those that are left in inbox or new: what is no file, what cannot be read, and
// what has been empty or unfinished for an hour.
func (b *Box) BadFiles() (out []BadFile, err error) {
	names, err := b.badNames()
	for _, name := range names {
		file := b.in("inbox/bad", name)
		f := BadFile{Name: name, Reason: "no reason recorded", Dir: "inbox/bad"}
		if info, err := b.store.root.Lstat(file); err == nil {
			f.Size = info.Size()
		}
		if reason, err := b.store.root.ReadFile(file+".reason", 4096); err == nil {
			f.Reason = strings.TrimSpace(string(reason))
		}
		out = append(out, f)
	}
	found, err2 := b.listInbox()
	for _, d := range found.drops {
		f, err := b.store.root.Open(d.file)
		f.Close()
		if errors.Is(err, fs.ErrPermission) {
			dir := strings.TrimPrefix(path.Dir(d.file), b.in()+"/")
			found.left = append(found.left, BadFile{path.Base(d.file), leftReasons[leftUnreadable], d.size, dir})
		}
	}
	return append(out, found.left...), cmp.Or(err, err2)
}
