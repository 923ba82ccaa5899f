package mailbox

import (
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// maxName is what is kept of a foreign file's name, in bytes: room for an id
// and an ending within the 255 that file systems allow.
const maxName = 180

func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	end := ""
	if isJSON(name) { // it says how the file is understood
		end = name[len(name)-len(".json"):]
	}
	name = name[:maxName-len(end)]
	for range utf8.UTFMax - 1 { // a rune that was cut
		if r, n := utf8.DecodeLastRuneInString(name); r != utf8.RuneError || n != 1 {
			break
		}
		name = name[:len(name)-1]
	}
	return name + end
}

func isJSON(name string) bool {
	return len(name) >= 5 && strings.EqualFold(name[len(name)-5:], ".json")
}

// setAside moves a file that is under a message's name in new, and is no
// message, to bad. A file that somebody is still writing is left alone.
func (r *room) setAside(be *BadError) {
	if writing, _ := beingWritten(r.fresh, be.Name); writing {
		return
	}
	if r.toBad(r.fresh, be.Name, be.Reason) == nil {
		r.bad++
	}
}

// toBad moves an entry of a directory to bad, with the reason beside it.
func (r *room) toBad(from *atomicfile.Dir, name, reason string) error {
	return r.toBadAs(from, name, name, reason)
}

func (r *room) toBadAs(from *atomicfile.Dir, name, as, reason string) error {
	bad, err := r.dir("inbox/bad", true)
	if err != nil {
		return err
	}
	as = strings.TrimLeft(as, ".")
	if as == "" {
		as = "unnamed"
	}
	if len(as) > maxName || strings.HasSuffix(as, ".reason") {
		as = cut(as) + "." + string(wire.NewID())
	}
	err = atomicfile.Move(from, name, bad, as)
	if errors.Is(err, fs.ErrExist) {
		as = cut(as) + "." + string(wire.NewID())
		err = atomicfile.Move(from, name, bad, as)
	}
	if err != nil {
		return err
	}
	// The reason is for people; the file is safe without it.
	bad.Replace(as+".reason", []byte(reason+"\n"), false)
	return nil
}

// BadFile is a file that was set aside.
type BadFile struct {
	Name, Reason string
	Size         int64
}

// BadFiles lists what was set aside, at most n (all when n <= 0).
func (b *Box) BadFiles(n int) ([]BadFile, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	d, err := r.dir("inbox/bad", false)
	if d == nil || err != nil {
		return nil, err
	}
	var out []BadFile
	err = d.Names(func(names []string) bool {
		for _, name := range names {
			if strings.HasSuffix(name, ".reason") || strings.HasPrefix(name, ".") {
				continue
			}
			if n > 0 && len(out) >= n {
				return false
			}
			f := BadFile{Name: name, Reason: "no reason noted"}
			if info, err := d.Lstat(name); err == nil {
				f.Size = info.Size()
			}
			if why, err := d.ReadFile(name+".reason", 4096); err == nil {
				f.Reason = strings.TrimSpace(string(why))
			}
			out = append(out, f)
		}
		return true
	})
	return out, err
}
