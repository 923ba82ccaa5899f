package drop

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
)

// BadFile is a file that is not taken for mail.
type BadFile struct {
	Name, Reason string
	Size         int64
	Dir          string // inbox/bad, or where it is left: inbox or inbox/new
}

// BadNames lists the files in bad.
func BadNames(b *maildir.Box) (bad []string, err error) {
	names, err := b.Store().Dir().Names(b.In("inbox/bad"))
	for _, name := range names {
		if !strings.HasSuffix(name, ".reason") && name[0] != '.' {
			bad = append(bad, name)
		}
	}
	return bad, err
}

// CountBad counts the files that BadFiles lists, after Ingest.
func CountBad(b *maildir.Box, in Ingested) int {
	bad, _ := BadNames(b) // doctor reports a directory that cannot be read
	return len(bad) + in.Left
}

// BadFiles lists the files in bad, and those that are left in inbox or new: what is no file, what cannot be read, and
// what has been empty or unfinished for an hour.
func BadFiles(b *maildir.Box) (out []BadFile, err error) {
	names, err := BadNames(b)
	for _, name := range names {
		file := b.In("inbox/bad", name)
		f := BadFile{Name: name, Reason: "no reason recorded", Dir: "inbox/bad"}
		if info, err := b.Store().Dir().Lstat(file); err == nil {
			f.Size = info.Size()
		}
		if reason, err := b.Store().Dir().ReadFile(file+".reason", 4096); err == nil {
			f.Reason = strings.TrimSpace(string(reason))
		}
		out = append(out, f)
	}
	found, err2 := List(b)
	for _, d := range found.Drops {
		f, err := b.Store().Dir().Open(d.file)
		f.Close()
		if errors.Is(err, fs.ErrPermission) {
			dir := strings.TrimPrefix(path.Dir(d.file), b.In()+"/")
			found.left = append(found.left, BadFile{path.Base(d.file), leftReasons[LeftUnreadable], d.size, dir})
		}
	}
	return append(out, found.left...), cmp.Or(err, err2)
}
