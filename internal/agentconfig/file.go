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
	f.recordPath, f.record = p.recordOf(r, f.real)
	return f, err
}

// recordOf reads the record of a request and a file. The path is "" without a state directory.
func (p *Installer) recordOf(r Request, real string) (path string, noted *record) {
	if p.State == "" {
		return "", nil
	}
	name := fmt.Sprintf("%s.%.8x.json", strings.ReplaceAll(r.label(), " --", "-"), sha256.Sum256([]byte(real)))
	path = filepath.Join(p.State, "install", name)
	data, _ := os.ReadFile(path)
	if json.Unmarshal(data, &noted) != nil || noted == nil || noted.Installed == nil {
		return path, nil
	}
	return path, noted
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
	} else if f.changed() {
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

// blockMarks are the comments around lines of ours.
func blockMarks(comment, label string) (begin, end string) {
	return comment + " atm begin: atm install " + label + " writes this, atm uninstall " + label + " removes it\n", comment + " atm end\n"
}

// blockEdit keeps lines of ours at the end of a file.
func blockEdit(path, comment, label, body, added, removed string) edit {
	return edit{path, func(f *file) error {
		begin, end := blockMarks(comment, label)
		text := f.withoutBlocks(comment, label, body)
		if f.isRemoval {
			f.set(text, removed)
		} else if !strings.Contains(string(f.after), begin+body+end) {
			f.set(endLine(text)+begin+body+end, added)
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

// withoutBlocks is the file without our lines. Others write between our marks as well: Codex puts new tables in front of
// the last comment. So ours are those lines there that are in body, which we write now, or in a block that the record
// has, and in no table of others. Our header of a TOML table stays where others have put something into the table. In a
// file of our own a block is ours as a whole: a part of a rule would be none.
func (f *file) withoutBlocks(comment, label, body string) (text string) {
	begin, end := blockMarks(comment, label)
	written := ""
	if f.record != nil {
		written = string(f.record.Installed)
	}
	if strings.HasPrefix(filepath.Base(f.path), "atm.") {
		written += string(f.after)
	}
	block := regexp.MustCompile("(?s)" + regexp.QuoteMeta(begin) + "(.*?)" + regexp.QuoteMeta(end))
	for _, b := range block.FindAllStringSubmatch(written, -1) {
		body += b[1]
	}
	known := map[string]bool{}
	for line := range strings.Lines(body) {
		known[strings.TrimSpace(line)] = true
	}
	begin, end = strings.TrimSpace(begin), strings.TrimSpace(end)
	in, table := "", ""                              // the mark above, and our header of this table
	isOthers, isMixed, isTorn := false, false, false // this table is; others' lines are between the marks; a mark is gone
	for line := range strings.Lines(string(f.after)) {
		s := strings.TrimSpace(line)
		isHeader := strings.HasPrefix(s, "[")
		if isHeader {
			table, isOthers = "", !known[s]
		}
		switch {
		case s == begin:
			in, isOthers = s, false
			continue
		case in == begin && s == end:
			in = ""
			continue
		case in == begin && known[s] && !isOthers:
			if isHeader {
				table = line
			}
			continue
		case strings.HasPrefix(s, comment+" atm begin: "):
			in = s
		case s == end:
			isTorn = isTorn || in == ""
			in = ""
		}
		isMixed = isMixed || in == begin && s != ""
		if s != "" && s[0] != '#' {
			text, table = text+table, ""
		}
		text += line
	}
	if f.isRemoval && isMixed {
		f.notes = append(f.notes, f.path+" keeps what stood between atm's marks and atm is not known to have written")
	}
	if f.isRemoval && isTorn {
		f.notes = append(f.notes, fmt.Sprintf("%s keeps what stands above %q: the mark where that begins is gone", f.path, end))
	}
	return text
}
