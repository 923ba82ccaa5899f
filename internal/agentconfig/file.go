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

// edit is what is to be done to one file.
type edit struct {
	path  string
	apply func(*file) error // to f.after: puts in what is ours, or takes it out
}

// file is a configuration file while it is edited.
type file struct {
	path      string      // as a person names it
	real      string      // without links
	info      fs.FileInfo // nil: there is no such file yet
	before    []byte
	after     []byte
	isRemoval bool // what is ours goes
	remove    bool // nothing of the file is left to keep

	recordPath string  // "": there is no state directory
	record     *record // of an earlier install, nil: none
	added      []setting
	changes    []string // told to a person, and notes too
	notes      []string
}

// record is what is noted of an edited file to take the edit back: a JSON file below the user's state
// directory, install/TOOL.HASH.json, where HASH is that of the path.
type record struct {
	Existed  bool      `json:"existed"`
	Original []byte    `json:"original"` // the file without what is ours
	After    string    `json:"after"`    // SHA-256 of the file as we left it
	Added    []setting `json:"settings,omitempty"`
}

func hash(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// openFile reads a file that is to be edited, and makes sure that it may be.
func (p *Installer) openFile(r Request, path string) (f *file, err error) {
	f = &file{path: path, isRemoval: r.isRemoval}
	if f.real, err = realPath(path); err == nil {
		err = checkUntracked(f.path, f.real)
	}
	if err == nil {
		f.before, f.info, err = readFile(f.real)
	}
	f.after = f.before
	if p.State != "" {
		f.recordPath = filepath.Join(p.State, "install", r.Tool+"."+hash([]byte(f.real))[:16]+".json")
		data, _ := os.ReadFile(f.recordPath)
		if json.Unmarshal(data, &f.record) != nil {
			f.record = nil
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
	if f.record != nil {
		f.added = append(f.added, f.record.Added...)
	}
	f.record = &record{Existed: f.info != nil && !without.remove, Original: without.after, After: hash(f.after), Added: f.added}
	return nil
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
	if f.record != nil && f.record.After == hash(f.before) {
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

// recordFile is the file with the record, to be written or removed; nil: there is none.
func (f *file) recordFile() (*file, error) {
	if f.recordPath == "" || f.record == nil {
		return nil, nil
	}
	data, err := json.Marshal(f.record)
	if err != nil {
		return nil, err
	}
	r := &file{path: f.recordPath, real: f.recordPath, after: data, remove: f.isRemoval}
	r.before, r.info, err = readFile(r.real)
	return r, err
}

// writeFiles puts every file in place. Nothing is replaced before all of them are written beside it;
// when that fails nothing of it is left.
func writeFiles(files []*file) error {
	var made []string // new directories, the inner ones first
	temps := make([]string, len(files))
	defer func() {
		for _, path := range append(temps, made...) {
			os.Remove(path) // what is in use stays: it is not empty, or has another name by now
		}
	}()
	for i, f := range files {
		if f.remove {
			continue
		}
		var missing []string
		dir := filepath.Dir(f.real)
		for d := dir; !exists(d); d = filepath.Dir(d) {
			missing = append(missing, d)
		}
		made = append(missing, made...)
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			temps[i], err = f.writeTemp()
		}
		if err != nil {
			return err
		}
	}
	for i, f := range files {
		if err := f.replace(temps[i]); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// writeTemp writes the new content beside the file. The name is good also with an error.
func (f *file) writeTemp() (string, error) {
	t, err := os.CreateTemp(filepath.Dir(f.real), "."+filepath.Base(f.real)+".*")
	if err != nil {
		return "", err
	}
	mode := fs.FileMode(0o600)
	if f.info != nil {
		mode = f.info.Mode().Perm()
	}
	_, err = t.Write(f.after)
	return t.Name(), errors.Join(err, t.Chmod(mode), t.Sync(), t.Close())
}

// replace puts the new content in place, if the file is still what was read.
func (f *file) replace(temp string) error {
	now, info, err := readFile(f.real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.before) || (info == nil) != (f.info == nil) {
		return fmt.Errorf("%s: another program changed it in the meantime, and it was left alone", f.path)
	}
	if !f.remove {
		return os.Rename(temp, f.real)
	}
	if err := os.Remove(f.real); err != nil {
		return err
	}
	// What was made for the file goes with it, unless something else is in there.
	dir := filepath.Dir(f.real)
	if up := filepath.Dir(dir); os.Remove(dir) == nil && strings.HasPrefix(filepath.Base(up), ".") {
		os.Remove(up)
	}
	return nil
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

// realPath follows the links in a path, also of the file itself, to where the file is or would be.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return real, err
	}
	if exists(path) {
		return "", fmt.Errorf("%s is a link that leads nowhere", path)
	}
	dir, err := realPath(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

func blockBegin(comment, tool string) string {
	return comment + " atm begin: atm install " + tool + " writes this, atm uninstall " + tool + " removes it\n"
}

// block finds lines of ours. comment begins a comment in such a file.
func block(comment, tool string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + regexp.QuoteMeta(blockBegin(comment, tool)) + ".*?" + comment + " atm end\n")
}

// blockEdit is an edit that adds lines of ours.
func blockEdit(path, comment, tool, body, added, removed string) edit {
	return edit{path, func(f *file) error { f.replaceBlock(comment, tool, body, added, removed); return nil }}
}

// replaceBlock puts lines of ours in the place of the last ones, or at the end. Without a body, and at
// a removal, they go.
func (f *file) replaceBlock(comment, tool, body, added, removed string) {
	said, lines := removed, ""
	if body != "" && !f.isRemoval {
		said, lines = added, blockBegin(comment, tool)+body+comment+" atm end\n"
	}
	old, text := block(comment, tool), string(f.after)
	if old.MatchString(text) {
		text = old.ReplaceAllLiteralString(text, lines)
	} else if lines != "" {
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
