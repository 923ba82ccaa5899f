package agentconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// edit adds atm's part to f.after, or removes it.
type edit struct {
	path      string
	isServer  bool // only --mcp installs it
	isPlugins bool // the tool's plugin has all of it, so that it goes
	apply     func(f *file, isRemoval bool) error
}

type file struct {
	path   string // as a person names it
	real   string // without links
	mode   fs.FileMode
	mark   string // its byte-order mark, "" without one
	before []byte // the rest; nil: there is no such file yet
	after  []byte // nil: there is to be none

	recordPath string // "": there is no state directory
	isRecorded bool   // there is a record of an install, or is to be one once the file is saved
	record     record
	changes    []string // for the report
	notes      []string // for the report
}

// record says how to undo the edits of one file. It is a JSON file below the user's state directory,
// install/TOOL.HASH.json, where HASH is that of the edited file's path.
type record struct {
	Original  []byte `json:"original"`  // the file without atm's part; nil: there was none
	Installed []byte `json:"installed"` // the file as atm left it
	Made      int    `json:"made"`      // how many directories above it atm made
}

// read reads a file and its record. It always returns a file.
func (p *Installer) read(tool, path string) (f *file, err error) {
	f = &file{path: path}
	if f.real, err = durable.RealPath(path); err != nil {
		return f, err
	}
	if p.State != "" {
		name := fmt.Sprintf("%s.%.8x.json", tool, sha256.Sum256([]byte(f.real)))
		f.recordPath = filepath.Join(p.State, "install", name)
		data, _ := durable.ReadRegular(f.recordPath, 8*maxFile)
		f.isRecorded = json.Unmarshal(data, &f.record) == nil
	}
	f.before, f.mode, err = readFile(f.real)
	if text, hasMark := bytes.CutPrefix(f.before, []byte(byteOrderMark)); hasMark {
		f.mark, f.before = byteOrderMark, text
	}
	if bytes.HasPrefix(f.before, []byte("\xff\xfe")) || bytes.HasPrefix(f.before, []byte("\xfe\xff")) {
		err = fmt.Errorf("%s is UTF-16, which atm does not change: save it as UTF-8", path)
	}
	f.after = f.before
	return f, err
}

const byteOrderMark = "\ufeff"

func (f *file) isChanged() bool { return !bytes.Equal(f.before, f.after) }

// isAsInstalled reports whether nobody else has changed the file since the last install.
func (f *file) isAsInstalled() bool {
	return f.isRecorded && bytes.Equal(f.record.Installed, f.before)
}

func (f *file) addChange(change string) {
	if !slices.Contains(f.changes, change) {
		f.changes = append(f.changes, change)
	}
}

func (f *file) setText(text, change string) {
	if text != string(f.after) {
		f.after = []byte(text)
		f.addChange(change)
	}
}

func (f *file) apply(edits []edit, isRemoval bool) error {
	for _, e := range edits {
		if err := e.apply(f, isRemoval); err != nil {
			return err
		}
	}
	return nil
}

// install applies the wanted edits, and records the file with and without atm's part.
func (f *file) install(all, wanted []edit) error {
	original := f.record.Original
	if !f.isAsInstalled() {
		without := *f
		if err := without.apply(all, true); err != nil {
			return err
		}
		original = without.after
	}
	f.record.Original = original
	err := f.apply(wanted, false)
	f.record, f.isRecorded = record{original, f.after, max(f.record.Made, missingAbove(f.real))}, true
	return err
}

// uninstall gives the file its original content back, or removes atm's part if somebody else has changed the file since
// the install.
func (f *file) uninstall(edits []edit) error {
	if err := f.apply(edits, true); err != nil {
		return err
	}
	if f.isAsInstalled() {
		f.after = f.record.Original
	} else if f.isChanged() && len(bytes.TrimSpace(f.after)) == 0 {
		f.after = nil
	}
	f.changes, f.isRecorded = []string{"atm's part removed"}, false
	return nil
}

// stage writes what is to be in the file and its record beside them, if the file is still as it was read. What a killed
// install has left there goes.
func (f *file) stage() error {
	f.unstage()
	if !f.isChanged() {
		return nil
	}
	now, _, err := readFile(f.real)
	if err == nil && string(now) != f.mark+string(f.before) {
		err = fmt.Errorf("another program changed %s at the same time: atm left it alone", f.path)
	}
	if err == nil && f.isRecorded && f.recordPath != "" {
		data, _ := json.Marshal(f.record) // never fails
		err = writeBeside(f.recordPath, data, 0o600)
	}
	if err == nil && f.after != nil {
		err = writeBeside(f.real, append([]byte(f.mark), f.after...), f.mode)
	}
	return err
}

func (f *file) unstage() {
	os.Remove(halfWritten(f.real))
	if f.recordPath != "" {
		os.Remove(halfWritten(f.recordPath))
		os.Remove(filepath.Dir(f.recordPath)) // fails if a record is there
	}
}

// commit puts in place what stage has written, or removes the file. The record is written before the file and removed
// after it, also if nothing of atm was left in the file: later additions by others are not atm's.
func (f *file) commit() (err error) {
	if f.isChanged() {
		if f.isRecorded && f.recordPath != "" {
			err = moveIn(f.recordPath)
		}
		if err == nil && f.after != nil {
			err = moveIn(f.real)
		} else if err == nil {
			err = os.Remove(f.real)
		}
	}
	if err != nil || f.isRecorded {
		return err
	}
	err = os.Remove(f.recordPath)
	f.unstage()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// missingAbove counts the directories that would have to be made for a file.
func missingAbove(path string) int {
	dir := filepath.Dir(path)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return 1 + missingAbove(dir)
	}
	return 0
}

// removeEmptyDirs removes the directories that atm made for files and that are empty now.
func removeEmptyDirs(files []*file) {
	slices.SortFunc(files, func(a, b *file) int { return len(filepath.Dir(b.real)) - len(filepath.Dir(a.real)) }) // inner ones first
	for _, f := range files {
		dir := f.real
		for range f.record.Made {
			dir = filepath.Dir(dir)
			os.Remove(dir) // fails if it is not empty
		}
	}
}

// writeBeside writes the new content of a file beside it.
func writeBeside(path string, data []byte, mode fs.FileMode) error {
	dir, name := filepath.Split(halfWritten(path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := durable.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Create(name, data); err != nil {
		return err
	}
	return os.Chmod(root.Join(name), mode)
}

// moveIn puts what was written beside a file in its place.
func moveIn(path string) error {
	dir, name := filepath.Split(path)
	root, err := durable.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MoveOver(filepath.Base(halfWritten(path)), name); err != nil {
		return err
	}
	return root.Sync(".")
}

// halfWritten is the path beside a file at which its new content is written. The next install for the file removes
// what a killed one has left: they have a lock.
func halfWritten(path string) string {
	dir, name := filepath.Split(path)
	return filepath.Join(dir, "."+name+".atm-install.tmp")
}

// maxFile is the most bytes of a file. Its record holds it twice, in base64.
const maxFile = 16 << 20

// readFile reads a file. If there is none, data is nil, and mode that of a new file.
func readFile(path string) (data []byte, mode fs.FileMode, err error) {
	data, err = durable.ReadRegular(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	info, _ := os.Stat(path)
	if err != nil || info == nil {
		return nil, 0, err
	}
	return data, info.Mode().Perm(), nil
}

// ownFile is the edit of a file that is atm's as a whole. A file that does not begin with atm's line is somebody
// else's.
func ownFile(path, comment, tool, body, change string) edit {
	head := fmt.Sprintf("%s atm install %s writes this file, atm uninstall %[2]s removes it\n", comment, tool)
	return edit{path: path, apply: func(f *file, isRemoval bool) error {
		isOurs := strings.HasPrefix(string(f.after), head)
		switch {
		case isOurs && isRemoval:
			f.setText("", "")
		case isOurs || len(f.after) == 0 && !isRemoval:
			f.setText(head+body, change)
		case !isRemoval:
			f.notes = append(f.notes, path+" was not written by atm install: left alone")
		}
		return nil
	}}
}

// mark is the comment that marks the lines of atm in a file of somebody else's.
func mark(tool string, isServer bool) string {
	if isServer {
		tool += " --mcp"
	}
	return "# atm install " + tool
}

func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
