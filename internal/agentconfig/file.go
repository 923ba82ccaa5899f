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
	"regexp"
	"strings"
)

type edit struct {
	path  string
	apply func(*file) error // to f.after: puts in what is ours, or takes it out
}

type file struct {
	path      string      // as a person names it
	real      string      // without links
	info      fs.FileInfo // nil: there is no such file yet
	before    []byte
	after     []byte
	isRemoval bool // what is ours goes
	remove    bool // nothing of the file is left to keep

	recordPath string   // "": there is no state directory
	record     *record  // of an earlier install, nil: none
	changes    []string // told to a person, and notes too
	notes      []string
}

// record is what is noted of an edited file to take the edit back: a JSON file below the user's state
// directory, install/TOOL.HASH.json, where HASH is that of the path.
type record struct {
	Existed   bool     `json:"existed"`
	Original  []byte   `json:"original"`       // the file without what is ours
	Installed []byte   `json:"installed"`      // the file as we left it
	Made      []string `json:"made,omitempty"` // directories that were not there, the innermost first
}

// openFile reads a file that is to be edited, and makes sure that it may be. After an earlier edit it is as that
// leaves it.
func (p *Installer) openFile(r Request, path string, earlier []*file) (f *file, err error) {
	f = &file{path: path, isRemoval: r.isRemoval}
	if f.real, err = realPath(path); err == nil {
		err = checkUntracked(path, f.real)
	}
	if err == nil {
		f.before, f.info, err = readFile(f.real)
	}
	for _, e := range earlier {
		if e.real == f.real && e.remove {
			f.before, f.info = nil, nil
		} else if e.real == f.real {
			f.before = e.after
		}
	}
	f.after = f.before
	if p.State != "" {
		name := fmt.Sprintf("%s.%.8x.json", strings.ReplaceAll(r.label(), " --", "-"), sha256.Sum256([]byte(f.real)))
		f.recordPath = filepath.Join(p.State, "install", name)
		var noted record
		data, _ := os.ReadFile(f.recordPath)
		if json.Unmarshal(data, &noted) == nil && noted.Installed != nil {
			f.record = &noted
		}
	}
	return f, err
}

func (f *file) changed() bool { return f.remove || !bytes.Equal(f.before, f.after) }

func (f *file) say(format string, args ...any) {
	f.changes = append(f.changes, fmt.Sprintf(format, args...))
}

func (f *file) notUnderstood(err error) error {
	return fmt.Errorf("%s cannot be understood, and was left alone: %w", f.path, err)
}

// install edits the file, and notes how it looked without what is ours.
func (f *file) install(e edit) error {
	without := *f
	without.isRemoval = true
	if err := e.apply(f); err != nil || !f.changed() {
		return err
	}
	if err := without.uninstall(e); err != nil {
		return err
	}
	made := missingDirs(f.real)
	if f.record != nil && len(f.record.Made) > len(made) { // both begin at the file
		made = f.record.Made
	}
	f.record = &record{Existed: f.info != nil && !without.remove, Original: without.after, Installed: f.after, Made: made}
	return nil
}

// missingDirs are the directories that a file needs and that are not there, the innermost first.
func missingDirs(path string) (dirs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, dir)
	}
}

// uninstall takes what is ours out of the file. Where nobody else has edited it since, it gets its
// original content back.
func (f *file) uninstall(e edit) error {
	if f.info == nil {
		return nil
	}
	if err := e.apply(f); err != nil {
		return err
	}
	if f.record != nil && bytes.Equal(f.record.Installed, f.before) {
		f.after, f.remove = f.record.Original, !f.record.Existed
	} else if f.changed() {
		left := string(bytes.TrimSpace(f.after))
		f.remove = left == "" || left == "{}" && f.record != nil && !f.record.Existed
	}
	if f.remove {
		f.say("the file removed: it held nothing else")
	}
	return nil
}

// save writes the file, if it is still what was read, or removes it. Its record comes before it and goes after it.
func (f *file) save() error {
	now, info, err := readFile(f.real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.before) || (info == nil) != (f.info == nil) {
		return fmt.Errorf("%s: another program changed it in the meantime, and it was left alone", f.path)
	}
	hasRecord := f.recordPath != "" && f.record != nil
	if hasRecord && !f.isRemoval {
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
	} else {
		err = replaceFile(f.real, f.after, mode)
	}
	if err == nil && hasRecord && f.isRemoval {
		err = os.Remove(f.recordPath)
		for _, dir := range append(f.record.Made, filepath.Dir(f.recordPath)) {
			os.Remove(dir) // unless something else is in there
		}
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

// blockMarks begin and end lines of ours, which all matches. comment begins a comment in such a file.
func blockMarks(comment, tool string) (begin, end string, all *regexp.Regexp) {
	begin = comment + " atm begin: atm install " + tool + " writes this, atm uninstall " + tool + " removes it\n"
	end = comment + " atm end\n"
	return begin, end, regexp.MustCompile("(?s)" + regexp.QuoteMeta(begin) + ".*?" + regexp.QuoteMeta(end))
}

func blockEdit(path, comment, tool, body, added, removed string) edit {
	return edit{path, func(f *file) error { f.replaceBlock(comment, tool, body, added, removed); return nil }}
}

// replaceBlock puts lines of ours in the place of the last ones, or at the end. Without a body, and at
// a removal, they go.
func (f *file) replaceBlock(comment, tool, body, added, removed string) {
	begin, end, old := blockMarks(comment, tool)
	said, lines := removed, ""
	if body != "" && !f.isRemoval {
		said, lines = added, begin+body+end
	}
	text := old.ReplaceAllLiteralString(string(f.after), lines)
	if lines != "" && !old.Match(f.after) {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += lines
	}
	if text != string(f.after) {
		f.after = []byte(text)
		f.say("%s", said)
	}
}
