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

// edit puts what is ours into a file, or takes it out.
type edit struct {
	path     string
	isServer bool              // only --mcp installs it
	apply    func(*file) error // to f.after
}

type file struct {
	path      string      // as a person names it
	real      string      // without links
	info      fs.FileInfo // nil: there is no such file yet
	before    []byte
	after     []byte
	edits     []edit // all that a tool has for it
	isRemoval bool   // what is ours goes
	remove    bool   // nothing of the file is left to keep

	recordPath string // "": there is no state directory
	isRecorded bool   // there is a record of an earlier install
	record     record
	isDone     bool     // nothing of ours is left: the record goes
	changes    []string // told to a person, and notes too
	notes      []string
}

// record is what is noted of an edited file to take the edit back: a JSON file below the user's state
// directory, install/TOOL.HASH.json, where HASH is that of the path.
type record struct {
	Existed   bool     `json:"existed"`
	Original  []byte   `json:"original"`       // the file without what is ours
	Installed []byte   `json:"installed"`      // the file as we left it
	Made      []string `json:"made,omitempty"` // directories that were not there
}

// openFile reads a file and its record.
func (p *Installer) openFile(tool, path string) (f *file, err error) {
	f = &file{path: path}
	if f.real, err = realPath(path); err != nil {
		return f, err
	}
	if p.State != "" {
		name := fmt.Sprintf("%s.%.8x.json", tool, sha256.Sum256([]byte(f.real)))
		f.recordPath = filepath.Join(p.State, "install", name)
		data, _ := os.ReadFile(f.recordPath)
		f.isRecorded = json.Unmarshal(data, &f.record) == nil
	}
	f.before, f.info, err = readFile(f.real)
	f.after = f.before
	return f, err
}

func (f *file) changed() bool { return f.remove || !bytes.Equal(f.before, f.after) }

func (f *file) say(format string, args ...any) {
	if said := fmt.Sprintf(format, args...); !slices.Contains(f.changes, said) {
		f.changes = append(f.changes, said)
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

// isAsInstalled reports whether nobody else has changed the file since the last install.
func (f *file) isAsInstalled() bool {
	return f.isRecorded && f.info != nil && bytes.Equal(f.record.Installed, f.before)
}

// install edits the file, and notes how it looked without what is ours.
func (f *file) install(edits []edit) error {
	without, noted := *f, f.record
	noted.Existed = f.info != nil && (f.record.Existed || !f.isRecorded)
	noted.Made = append(missingDirs(f.real), f.record.Made...)
	if !f.isAsInstalled() {
		if err := without.apply(f.edits, true); err != nil {
			return err
		}
		noted.Original = without.after
	}
	err := f.apply(edits, false)
	noted.Installed = f.after
	f.record, f.isRecorded = noted, true
	return err
}

// missingDirs are the directories that a file needs and that are not there.
func missingDirs(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, dir)
	}
}

// uninstall takes edits back. Where nothing of ours is left then, and nobody else has edited the file since the
// install, it gets its original content back.
func (f *file) uninstall(edits []edit) error {
	if err := f.apply(edits, true); err != nil {
		return err
	}
	rest := *f
	if err := rest.apply(f.edits, true); err != nil {
		return err
	}
	f.isDone = bytes.Equal(rest.after, f.after)
	left := string(bytes.TrimSpace(f.after))
	switch {
	case f.isDone && f.isAsInstalled():
		f.after, f.remove = f.record.Original, !f.record.Existed
	case f.isDone && f.changed():
		f.remove = left == "" || left == "{}" && f.isRecorded && !f.record.Existed
	case f.isAsInstalled():
		f.record.Installed = f.after
	}
	if f.remove {
		f.say("the file removed: it held nothing else")
	}
	return nil
}

// save writes the file, if it is still what was read, or removes it. Its record comes before it and goes after it, also
// where nothing of ours is left in the file: what others put there later is not ours.
func (f *file) save() error {
	now, info, err := readFile(f.real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.before) || (info == nil) != (f.info == nil) {
		return fmt.Errorf("%s: another program changed it in the meantime, and it was left alone", f.path)
	}
	hasRecord := f.recordPath != "" && f.isRecorded
	if hasRecord && !f.isDone {
		data, _ := json.Marshal(f.record) // it never fails
		if err := replaceFile(f.recordPath, data, 0o600); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o600)
	if f.info != nil {
		mode = f.info.Mode().Perm()
	}
	if f.remove {
		err = os.Remove(f.real)
	} else if f.changed() {
		err = replaceFile(f.real, f.after, mode)
	}
	if err == nil && hasRecord && f.isDone {
		err = os.Remove(f.recordPath)
		os.Remove(filepath.Dir(f.recordPath)) // unless another is in there
	}
	return err
}

// saveAll stops at the first error. Directories that installs have made are removed once they are empty.
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
		os.Remove(dir) // unless something is in there
	}
	return err
}

func replaceFile(path string, data []byte, mode fs.FileMode) error {
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // unless it has its own name by then
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// readFile reads a regular file that may be written; info is nil where there is none.
func readFile(path string) (data []byte, info fs.FileInfo, err error) {
	info, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o200 == 0:
		err = fmt.Errorf("%s is read-only, and was left alone", path)
	default:
		data, err = os.ReadFile(path)
	}
	return data, info, err
}

func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a link that leads nowhere", path)
	}
	dir, err := realPath(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// ownFile is a file that is ours as a whole. One that does not begin with our line is somebody else's.
func ownFile(path, comment, tool, body, added, removed string) edit {
	head := fmt.Sprintf("%s atm install %s writes this file, atm uninstall %[2]s removes it\n", comment, tool)
	return edit{path: path, apply: func(f *file) error {
		isOurs := strings.HasPrefix(string(f.after), head)
		switch {
		case isOurs && f.isRemoval:
			f.set("", removed)
		case isOurs || len(f.after) == 0 && !f.isRemoval:
			f.set(head+body, added)
		case !f.isRemoval:
			f.notes = append(f.notes, path+" is not of atm, and was left alone")
		}
		return nil
	}}
}

func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func (f *file) set(text, said string) {
	if text != string(f.after) {
		f.after = []byte(text)
		f.say("%s", said)
	}
}
