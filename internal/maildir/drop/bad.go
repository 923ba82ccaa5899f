package drop

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
)

// BadFile is a file that is not taken for mail.
type BadFile struct {
	Name, Reason string
	Size         int64
	Dir          string // inbox/bad, or where it is left: inbox or inbox/new
	Code         string // doctor's, of one that is left
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
func CountBad(b *maildir.Box, in Ingested) (int, error) {
	bad, err := BadNames(b)
	return len(bad) + in.Left, err
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
	return append(out, found.Left...), cmp.Or(err, err2)
}

// unfinished are the ends of the names that editors and browsers give to a file until it is whole.
var unfinished = []string{"~", ".tmp", ".part", ".crdownload"}

// Finished returns the name that a dropped file gets once it is whole: another one if it has the name of an unfinished
// file now.
func Finished(name string) string {
	for _, end := range unfinished {
		if whole, isUnfinished := strings.CutSuffix(name, end); isUnfinished && whole != "" {
			return whole
		}
	}
	return name
}

// unfinishedFor is how long an unfinished or empty file may be unchanged before it counts as left behind.
const unfinishedFor = time.Hour

// leftReasons says why a file in inbox or new is not taken in, by doctor's code for it.
var leftReasons = map[string]string{
	leftNotAFile:   "it is not a regular file, so atm never opens it",
	leftEmpty:      "it is empty: atm waits until it has content",
	leftUnfinished: "it is named like an unfinished file: it is mail once it has another name",
	leftUnreadable: "it cannot be read: permission denied",
}

const (
	leftNotAFile   = "drop.not_a_file"
	leftEmpty      = "drop.empty"
	leftUnfinished = "drop.named_unfinished"
	leftUnreadable = "drop.unreadable"
)

// whyLeft returns why a file is not taken in, or "". isNamed says that people are told of it.
func whyLeft(b *maildir.Box, d File) (code string, isNamed bool) {
	name := path.Base(d.Path)
	isOld := time.Since(d.info.ModTime()) > unfinishedFor
	switch {
	case !d.info.Mode().IsRegular():
		return leftNotAFile, true
	case d.info.Size() == 0 && !d.IsBegun:
		return leftEmpty, isOld
	case Finished(name) != name: // never of one that is begun
		return leftUnfinished, isOld
	}
	f, err := b.Store().Dir().Open(d.Path)
	f.Close() // nil too
	if errors.Is(err, fs.ErrPermission) {
		return leftUnreadable, true
	}
	return "", false
}
