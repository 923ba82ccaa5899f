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
)

// edit adds atm's part to a file, or removes it.
type edit struct {
	path     string
	isServer bool              // only --mcp installs it
	apply    func(*file) error // changes f.after
}

type file struct {
	path      string // as a person names it
	real      string // without links
	mode      fs.FileMode
	before    []byte // nil: there is no such file yet
	after     []byte // nil: there is to be none
	edits     []edit // all that the tool has for this file
	isRemoval bool   // the edits remove atm's part

	recordPath string // "": there is no state directory
	isRecorded bool   // there is a record of an install, or is to be one once the file is saved
	record     record
	changes    []string // for the report
	notes      []string // for the report
}

// record says how to undo the edits of one file. It is a JSON file below the user's state directory,
// install/TOOL.HASH.json, where HASH is that of the edited file's path.
type record struct {
	Original  []byte   `json:"original"`       // the file without atm's part; nil: there was none
	Installed []byte   `json:"installed"`      // the file as atm left it
	Made      []string `json:"made,omitempty"` // directories that install made
}

// filesOf groups edits by file, in their order.
func filesOf(edits []edit) (files []*file) {
	byPath := map[string]*file{}
	for _, e := range edits {
		f := byPath[e.path]
		if f == nil {
			f = &file{path: e.path}
			byPath[e.path], files = f, append(files, f)
		}
		f.edits = append(f.edits, e)
	}
	return files
}

// read reads a file and its record.
func (p *Installer) read(tool string, f *file) (err error) {
	if f.real, err = realPath(f.path); err != nil {
		return err
	}
	if p.State != "" {
		name := fmt.Sprintf("%s.%.8x.json", tool, sha256.Sum256([]byte(f.real)))
		f.recordPath = filepath.Join(p.State, "install", name)
		data, _ := os.ReadFile(f.recordPath)
		f.isRecorded = json.Unmarshal(data, &f.record) == nil
	}
	f.before, f.mode, err = readFile(f.real)
	f.after = f.before
	return err
}

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
	f.isRemoval = isRemoval
	for _, e := range edits {
		if err := e.apply(f); err != nil {
			return err
		}
	}
	return nil
}

// install applies the edits, and records the file with and without atm's part.
func (f *file) install(edits []edit) error {
	next := f.record
	next.Made = append(missingDirs(f.real), f.record.Made...)
	if !f.isAsInstalled() {
		without := *f
		if err := without.apply(f.edits, true); err != nil {
			return err
		}
		next.Original = without.after
	}
	err := f.apply(edits, false)
	next.Installed = f.after
	f.record, f.isRecorded = next, true
	return err
}

// uninstall undoes the edits. If nothing of atm is left then, and nobody else has changed the file since the install,
// the file gets its original content back.
func (f *file) uninstall(edits []edit) error {
	if err := f.apply(edits, true); err != nil {
		return err
	}
	rest := *f
	if err := rest.apply(f.edits, true); err != nil {
		return err
	}
	isAsInstalled := f.isAsInstalled()
	if !bytes.Equal(rest.after, f.after) { // the other part of atm stays
		if isAsInstalled {
			f.record.Installed = f.after
		}
		return nil
	}
	f.isRecorded = false
	if isAsInstalled {
		f.after = f.record.Original
	} else if f.isChanged() && len(bytes.TrimSpace(f.after)) == 0 {
		f.after = nil
	}
	if f.isChanged() && f.after == nil {
		f.addChange("file removed: it had nothing else in it")
	}
	return nil
}

// save writes or removes the file, if it is still as it was read. The record is written before the file and removed
// after it, also if nothing of atm was left in the file: later additions by others are not atm's.
func (f *file) save() error {
	if f.isChanged() {
		now, _, err := readFile(f.real)
		if err == nil && !bytes.Equal(now, f.before) {
			err = fmt.Errorf("another program changed %s at the same time: atm left it alone", f.path)
		}
		if err == nil && f.isRecorded && f.recordPath != "" {
			data, _ := json.Marshal(f.record) // never fails
			err = replaceFile(f.recordPath, data, 0o600)
		}
		if err == nil {
			err = replaceFile(f.real, f.after, f.mode)
		}
		if err != nil {
			return err
		}
	}
	if f.isRecorded || f.record.Installed == nil {
		return nil
	}
	err := os.Remove(f.recordPath)
	os.Remove(filepath.Dir(f.recordPath)) // fails if another record is there
	return err
}

// saveAll saves files up to the first error. It removes the directories that installs have made and that are empty.
func saveAll(files []*file) (err error) {
	var made []string
	for _, f := range files {
		made = append(made, f.record.Made...)
		if err == nil {
			err = f.save()
		}
	}
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) }) // the innermost first
	for _, dir := range made {
		os.Remove(dir) // fails unless it is empty
	}
	return err
}

// missingDirs returns the parent directories of a file that do not exist, the innermost first.
func missingDirs(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, dir)
	}
}

// replaceFile writes a file, or removes it if data is nil.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if data == nil {
		return os.Remove(path)
	}
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+name+".atm-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // after the rename there is none
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// readFile reads a regular, writable file. If there is none, data is nil, and mode that of a new file.
func readFile(path string) (data []byte, mode fs.FileMode, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o600, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o200 == 0:
		err = fmt.Errorf("%s is read-only: atm left it alone", path)
	default:
		data, err = os.ReadFile(path)
	}
	return data, info.Mode().Perm(), err
}

// realPath resolves the links in a path whose last elements need not exist yet.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a broken link", path)
	}
	dir, err := realPath(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// ownFile is the edit of a file that is atm's as a whole. A file that does not begin with atm's line is somebody
// else's.
func ownFile(path, comment, tool, body, added, removed string) edit {
	head := fmt.Sprintf("%s atm install %s writes this file, atm uninstall %[2]s removes it\n", comment, tool)
	return edit{path: path, apply: func(f *file) error {
		isOurs := strings.HasPrefix(string(f.after), head)
		switch {
		case isOurs && f.isRemoval:
			f.setText("", removed)
		case isOurs || len(f.after) == 0 && !f.isRemoval:
			f.setText(head+body, added)
		case !f.isRemoval:
			f.notes = append(f.notes, path+" was not written by this version of atm: left alone; if an earlier one wrote it, delete it and install again")
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
