package agentconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrChanged says that another program changed a file while it was edited.
var ErrChanged = errors.New("another program changed it in the meantime, and it was left alone")

// maxFile bounds what is read of a configuration file.
const maxFile = 8 << 20

// file is a configuration file while it is edited.
type file struct {
	path   string      // as a person names it
	real   string      // without links
	info   fs.FileInfo // nil: there is no such file yet
	before []byte
	after  []byte
	remove bool // nothing of the file is left to keep

	recordPath string  // "": there is no state directory
	record     *record // of an earlier install, nil: none
	added      []string
	changes    []string // told to a person, and notes too
	notes      []string
	earlier    bool     // hooks of ours were found: there was an install before
	temp       string   // the file that takes the place of this one
	made       []string // directories made for it, outermost first
}

// record is what is noted of an edited file to take the edit back: a JSON file
// below the user's state directory, install/TOOL.HASH.json, where HASH is that
// of the path.
type record struct {
	Path     string   `json:"path"`
	Existed  bool     `json:"existed"`
	Original []byte   `json:"original"` // the file without what is ours
	After    string   `json:"after"`    // SHA-256 of the file as we left it
	Added    []string `json:"added,omitempty"`
	Dirs     []string `json:"dirs,omitempty"` // directories that were made for it
}

// openFile reads a file that is to be edited, and makes sure that it may be.
func (p *Installer) openFile(tool string, e edit) (*file, error) {
	f := &file{path: e.path}
	var err error
	if f.real, err = realPath(e.path); err != nil {
		return nil, err
	}
	if err := untracked(f.path, f.real); err != nil {
		return nil, err
	}
	if f.before, f.info, err = readFile(f.real); err != nil {
		return nil, err
	}
	f.after = f.before
	if p.State != "" {
		f.recordPath = filepath.Join(p.State, "install", tool+"."+hash([]byte(f.real))[:16]+".json")
		var r record
		data, err := os.ReadFile(f.recordPath)
		if err == nil && json.Unmarshal(data, &r) == nil && r.Path == f.real {
			f.record = &r
		}
	}
	return f, nil
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (f *file) changed() bool { return f.remove || !bytes.Equal(f.before, f.after) }

func (f *file) say(format string, args ...any) {
	f.changes = append(f.changes, fmt.Sprintf(format, args...))
}

func (f *file) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// ours narrows values down to those that an install put into the file, as far
// as that is known.
func (f *file) ours(values []string) []string {
	if f.record != nil {
		return f.record.Added
	}
	if !f.earlier {
		return nil
	}
	return values
}

// install edits the file, and notes how it looked without what is ours.
func (f *file) install(e edit) error {
	if err := e.install(f); err != nil || !f.changed() {
		return err
	}
	without := &file{path: f.path, info: f.info, before: f.before, after: f.before, record: f.record, earlier: f.earlier}
	if err := without.uninstall(e); err != nil {
		return err
	}
	next := &record{Path: f.real, Existed: f.info != nil && !without.remove, Original: without.after, After: hash(f.after), Added: f.added}
	if f.record != nil {
		next.Added, next.Dirs = union(f.record.Added, f.added), f.record.Dirs
	}
	f.record = next
	return nil
}

// uninstall takes what is ours out of the file. Where nobody else has edited it
// since, it gets its original content back.
func (f *file) uninstall(e edit) error {
	if f.info == nil {
		return nil
	}
	if err := e.uninstall(f); err != nil {
		return err
	}
	if f.record != nil && f.record.After == hash(f.before) {
		f.after, f.remove = f.record.Original, !f.record.Existed
	} else if f.changed() {
		left := string(bytes.TrimSpace(f.after))
		made := f.record != nil && !f.record.Existed
		f.remove = left == "" && (made || f.record == nil) || left == "{}" && made
	}
	if f.remove {
		f.say("the file removed: it held nothing else")
	}
	return nil
}

// writeFiles puts every changed file in place. Nothing is replaced before all
// of them, and their records, are written beside it.
func writeFiles(files []*file) (notes []string, err error) {
	defer func() {
		for _, f := range files {
			if f.temp != "" {
				os.Remove(f.temp)
			}
		}
		if err != nil {
			for _, f := range files {
				removeEmpty(f.made)
			}
		}
	}()
	for _, f := range files {
		if !f.changed() || f.remove {
			continue
		}
		if f.made, err = makeDirs(filepath.Dir(f.real)); err != nil {
			return nil, err
		}
		if f.temp, err = f.writeTemp(); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if f.record == nil || !f.changed() {
			continue
		}
		if err := f.saveRecord(); err != nil {
			notes = append(notes, fmt.Sprintf("what was in %s before could not be noted (%v): atm uninstall will take out what it recognises", f.path, err))
		}
	}
	for _, f := range files {
		if err := f.replace(); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// writeTemp writes the new content beside the file.
func (f *file) writeTemp() (name string, err error) {
	t, err := os.CreateTemp(filepath.Dir(f.real), "."+filepath.Base(f.real)+".*")
	if err != nil {
		return "", err
	}
	mode := fs.FileMode(0o600)
	if f.info != nil {
		mode = f.info.Mode().Perm()
	}
	_, err = t.Write(f.after)
	err = errors.Join(err, t.Chmod(mode), t.Sync(), t.Close())
	if err != nil {
		os.Remove(t.Name())
		return "", err
	}
	return t.Name(), nil
}

// replace puts the new content in place, if the file is still what was read.
func (f *file) replace() error {
	if !f.changed() {
		return nil
	}
	now, info, err := readFile(f.real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.before) || (info == nil) != (f.info == nil) {
		return fmt.Errorf("%s: %w", f.path, ErrChanged)
	}
	if f.remove {
		return os.Remove(f.real)
	}
	return os.Rename(f.temp, f.real)
}

func (f *file) saveRecord() error {
	if f.recordPath == "" {
		return errors.New("there is no state directory")
	}
	made, err := makeDirs(filepath.Dir(f.recordPath))
	if err != nil {
		return err
	}
	f.record.Dirs = union(union(f.record.Dirs, f.made), made)
	data, err := json.Marshal(f.record)
	if err != nil {
		return err
	}
	f.made = union(f.made, made)
	return os.WriteFile(f.recordPath, data, 0o600)
}

// forget removes the records of files that hold nothing of ours any more, and
// the directories that were made for them.
func forget(files []*file) {
	var dirs []string
	for _, f := range files {
		if f.record != nil {
			os.Remove(f.recordPath)
			dirs = union(dirs, f.record.Dirs)
		}
	}
	removeEmpty(dirs)
}

// removeEmpty removes directories that hold nothing, inner ones first.
func removeEmpty(dirs []string) {
	dirs = slices.Sorted(slices.Values(dirs))
	for _, dir := range slices.Backward(dirs) {
		os.Remove(dir)
	}
}

// makeDirs makes a directory and those around it, and says which it made.
func makeDirs(dir string) (made []string, err error) {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	up := filepath.Dir(dir)
	if made, err = makeDirs(up); err != nil {
		return made, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return made, err
	}
	return append(made, dir), nil
}

// readFile reads a regular file that may be written; info is nil where there is
// none.
func readFile(path string) (data []byte, info fs.FileInfo, err error) {
	info, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Mode().Perm()&0o200 == 0 {
		return nil, nil, fmt.Errorf("%s is read-only, and was left alone", path)
	}
	if info.Size() > maxFile {
		return nil, nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	data, err = os.ReadFile(path)
	return data, info, err
}

// realPath follows the links in a path, also of the file itself, to where the
// file is or would be.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a link that leads nowhere", path)
	}
	if filepath.Dir(path) == path {
		return "", err
	}
	dir, err := realPath(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// union is a and what of b is not in it.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// blockEdit is a block of lines of ours in a file that others may have written
// to as well. comment begins a comment there.
func blockEdit(path, comment, tool, body, added, removed string) edit {
	begin := comment + " atm begin: atm install " + tool + " writes this, atm uninstall " + tool + " removes it\n"
	end := comment + " atm end\n"
	replace := func(f *file, block, said string) error {
		text := string(f.after)
		head, rest, found := strings.Cut(text, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			head, tail = text, ""
			if head != "" && block != "" && !strings.HasSuffix(head, "\n") {
				head += "\n"
			}
		}
		if text = head + block + tail; text != string(f.after) {
			f.after = []byte(text)
			f.say("%s", said)
		}
		return nil
	}
	return edit{
		path:      path,
		install:   func(f *file) error { return replace(f, begin+body+end, added) },
		uninstall: func(f *file) error { return replace(f, "", removed) },
	}
}

// rulesEdit is a file of our own with rules that let the mail verbs through.
func rulesEdit(tool, path, body string) edit {
	return blockEdit(path, "#", tool, body, "runs without asking: atm "+strings.Join(Verbs, ", "), "asked about again: rules for atm taken out")
}
