package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentteammail/atm/internal/confedit"
	"github.com/agentteammail/atm/internal/gitindex"
	"github.com/agentteammail/atm/teams/git"
)

// format is what a file is made of.
type format int

const (
	lines      format = iota // and what else is no tree: blocks
	strictJSON               // RFC 8259, as JSON.parse and serde_json read it
	jsonWithComments
	looseJSON // comments, and a comma too many
	tomlFile
)

// dialect is what a tool's reader of JSON takes.
func (f format) dialect() confedit.Dialect {
	return confedit.Dialect{Comments: f == jsonWithComments || f == looseJSON, TrailingCommas: f == looseJSON}
}

// maxFile bounds what is read of a configuration file.
const maxFile = 8 << 20

// sheet is a file while it is edited.
type sheet struct {
	path    string // as a person names it
	real    string // without links
	existed bool
	info    fs.FileInfo // of the file that was there
	before  []byte
	text    *confedit.Text
	format  format
	shared  bool // as part.shared
	remove  bool // nothing of the file is left to keep

	old    *record // what earlier calls noted; nil: nothing
	new    *record // what this one will note; nil: nothing any more
	renote bool    // new is to be written though the file stays as it is
	over   bool    // what was noted is no longer needed
	// changes are told to a person, notes as well.
	changes []string
	notes   []string

	noteFile string // where the record is; "": nowhere
	draft    string // the file that will take its place
	written  bool
}

// open reads a file that is to be edited, and makes sure that it may be.
func (p *Place) open(r Request, pt part) (*sheet, error) {
	s := &sheet{path: pt.path, format: pt.format, shared: pt.shared}
	real, err := realPath(pt.path)
	if err != nil {
		return nil, err
	}
	s.real = real
	if err := untracked(s.path, s.real); err != nil {
		return nil, err
	}
	if s.before, s.info, err = read(s.real); err != nil {
		return nil, err
	}
	s.existed = s.info != nil
	s.text = confedit.New(s.before)
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s cannot be understood, and was left alone: %w", s.path, err)
	}
	s.noteFile = p.recordFile(r.Tool, s.real)
	s.old = readRecord(s.noteFile, s.real)
	s.new = s.old.next()
	s.new.Path = s.real
	return s, nil
}

// check finds out whether the file is what its tool would read.
func (s *sheet) check() error {
	data := s.text.Bytes()
	var err error
	switch s.format {
	case strictJSON, jsonWithComments, looseJSON:
		if confedit.Blank(data) {
			return nil
		}
		var doc *confedit.JSON
		if doc, err = confedit.ParseJSON(data, s.format.dialect()); err == nil && doc.Root.Kind != confedit.Object {
			err = fmt.Errorf("it is %s, not an object", doc.Root.Kind)
		}
	case tomlFile:
		_, err = confedit.ParseTOML(data)
	}
	return err
}

func (s *sheet) changed() bool { return s.remove || !bytes.Equal(s.before, s.text.Bytes()) }

func (s *sheet) say(format string, args ...any) {
	s.changes = append(s.changes, fmt.Sprintf(format, args...))
}

// install fills the sheet, and notes what takes it back.
func (s *sheet) install(pt part) error {
	before := pt.ours != nil && pt.ours(s)
	if err := pt.fill(s); err != nil {
		return err
	}
	if !s.changed() {
		if !s.renote {
			s.new = s.old
		}
		return nil
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("an edit went wrong, and was not made: %w", err)
	}
	s.new.After = hash(s.text.Bytes())
	s.new.Undo = s.text.Undo()
	switch {
	case s.old == nil:
		s.new.Existed = s.existed
		s.new.Exact = !before
	case s.old.Exact && s.old.After == hash(s.before):
		s.new.Undo = append(s.new.Undo, s.old.Undo...)
	default:
		s.new.Exact = false // somebody else edited in between
	}
	return nil
}

// uninstall takes ours out of the sheet.
func (s *sheet) uninstall(pt part) error {
	s.new, s.over = nil, true
	if !s.existed {
		return nil
	}
	if err := pt.clear(s); err != nil {
		return err
	}
	if s.new != nil { // others still need it
		s.over = false
		return nil
	}
	defer func() {
		if s.remove {
			s.say("the file removed: it held nothing else")
		}
	}()
	if s.old != nil && s.old.Exact && s.old.After == hash(s.before) {
		was, err := confedit.Revert(s.before, s.old.Undo)
		if err == nil {
			s.text = confedit.New(was)
			s.remove = !s.old.Existed && len(was) == 0
			return nil
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("an edit went wrong, and was not made: %w", err)
	}
	// Of a file that we made, nothing that anybody put in is left.
	if s.old != nil && !s.old.Existed && s.changed() && s.bare() {
		s.remove = true
	}
	return nil
}

// bare reports whether nothing is left in the file but what a tool itself puts
// into one.
func (s *sheet) bare() bool {
	data := s.text.Bytes()
	if confedit.Blank(data) {
		return true
	}
	if s.format != strictJSON && s.format != jsonWithComments && s.format != looseJSON {
		return false
	}
	doc, err := confedit.ParseJSON(data, confedit.Dialect{}) // a comment is somebody's
	return err == nil && !slices.ContainsFunc(doc.Root.Members, func(m confedit.Member) bool { return m.Key != "$schema" })
}

// realPath follows links, in the path and of the file itself, to where a file
// is or would be.
func realPath(path string) (string, error) {
	dir, base := filepath.Dir(path), filepath.Base(path)
	realDir, err := realDirOf(dir)
	if err != nil {
		return "", err
	}
	real := filepath.Join(realDir, base)
	fi, err := os.Lstat(real)
	if err != nil || fi.Mode().Type() != fs.ModeSymlink {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return real, err
	}
	to, err := filepath.EvalSymlinks(real)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is a link that leads nowhere", path)
	}
	return to, err
}

// realDirOf is a directory without links; what is not there yet stays as it is
// written.
func realDirOf(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		return real, nil
	}
	up := filepath.Dir(dir)
	if !errors.Is(err, fs.ErrNotExist) || up == dir {
		return "", err
	}
	if _, e := os.Lstat(dir); e == nil {
		return "", fmt.Errorf("%s is a link that leads nowhere", dir)
	}
	above, err := realDirOf(up)
	return filepath.Join(above, filepath.Base(dir)), err
}

// read reads a regular file; info is nil where there is none.
func read(path string) (data []byte, info fs.FileInfo, err error) {
	info, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	case info.Mode().Perm()&0o200 == 0:
		return nil, nil, fmt.Errorf("%s is read-only, and was left alone", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return data, info, err
}

// TrackedError is about a file that a git repository tracks, or a link to it
// that one does. Such a file is others' as well.
type TrackedError struct {
	Path string // as it was asked for
	At   string // what is tracked
	Top  string // of the worktree that tracks it
}

func (e *TrackedError) Error() string {
	if e.At != e.Path {
		return fmt.Sprintf("%s leads to %s, which the repository at %s tracks: it was left alone", e.Path, e.At, e.Top)
	}
	return fmt.Sprintf("%s is tracked by the repository at %s: it was left alone", e.Path, e.Top)
}

// untracked makes sure that no repository tracks a file, nor a link on the way
// to it.
func untracked(path, real string) error {
	places := []string{real}
	for at := path; ; at = filepath.Dir(at) {
		fi, err := os.Lstat(at)
		if at == path || err == nil && fi.Mode().Type() == fs.ModeSymlink {
			dir, err := realDirOf(filepath.Dir(at))
			if err != nil {
				return err
			}
			places = union(places, []string{filepath.Join(dir, filepath.Base(at))})
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	for _, at := range places {
		for _, c := range git.Above(filepath.Dir(at)) {
			rel, err := filepath.Rel(c.Top, at)
			if err != nil || c.GitDir == "" {
				continue
			}
			is, err := gitindex.Tracked(c.GitDir, filepath.ToSlash(rel))
			if err != nil {
				return fmt.Errorf("find out whether %s is tracked: %w", path, err)
			}
			if is {
				return &TrackedError{Path: path, At: at, Top: c.Top}
			}
		}
	}
	return nil
}
