package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// errMeanwhile says that a file changed between reading and writing.
var errMeanwhile = errors.New("it was changed by somebody else in the meantime; try again")

// write carries the sheets out: all or, as far as the system lets, none.
func (p *Place) write(sheets []*sheet) (notes []string, err error) {
	defer func() {
		for _, s := range sheets {
			if s.draft != "" {
				os.Remove(s.draft)
			}
		}
	}()
	for _, s := range sheets {
		if !s.changed() || s.remove {
			continue
		}
		made, err := makeDirs(filepath.Dir(s.real), s.shared)
		if s.new != nil {
			s.new.Dirs = union(s.new.Dirs, made)
		}
		if err == nil {
			s.draft, err = newDraft(s.real, s.text.Bytes(), s.info, s.shared)
		}
		if err != nil {
			forget(fresh(sheets))
			return nil, err
		}
	}
	for _, s := range sheets {
		if !s.isNoted() {
			continue
		}
		if err := s.new.save(s.noteFile); err != nil {
			notes = append(notes, fmt.Sprintf("what was in %s before could not be noted (%v): atm uninstall will take out what it recognises", s.path, err))
		}
	}
	for _, s := range sheets {
		if err = s.commit(); err != nil {
			break
		}
	}
	if err != nil {
		for _, s := range slices.Backward(sheets) {
			if e := s.rollBack(); e != nil {
				err = fmt.Errorf("%w; and %s was written already: %w", err, s.path, e)
			}
		}
		for _, s := range sheets {
			os.Remove(s.draft) // or its directory would not be empty
		}
		forget(fresh(sheets))
		return nil, err
	}
	forget(slices.DeleteFunc(slices.Clone(sheets), func(s *sheet) bool { return !s.over }))
	return notes, nil
}

// fresh are the sheets of which nothing was noted before.
func fresh(sheets []*sheet) []*sheet {
	return slices.DeleteFunc(slices.Clone(sheets), func(s *sheet) bool { return s.old != nil })
}

// isNoted reports whether the sheet's record is to be written.
func (s *sheet) isNoted() bool { return s.new != nil && (s.changed() || s.renote) }

// commit puts the new content in the old one's place, if that is still what
// was read.
func (s *sheet) commit() error {
	if !s.changed() {
		return nil
	}
	now, info, err := read(s.real)
	if err == nil && (!bytes.Equal(now, s.before) || (info != nil) != s.existed) {
		err = fmt.Errorf("%s: %w", s.path, errMeanwhile)
	}
	switch {
	case err != nil:
	case s.remove:
		err = os.Remove(s.real)
	case s.existed:
		err = os.Rename(s.draft, s.real)
	default:
		// It is not there, and whoever made it a moment ago loses nothing.
		if err = os.Link(s.draft, s.real); errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s: %w", s.path, errMeanwhile)
		} else if err != nil { // no links here
			err = os.Rename(s.draft, s.real)
		}
	}
	if err != nil {
		return err
	}
	s.written = true
	syncDir(filepath.Dir(s.real))
	return nil
}

// rollBack gives a file that was written its old content, and its record.
func (s *sheet) rollBack() error {
	if s.isNoted() && s.noteFile != "" {
		if s.old == nil {
			os.Remove(s.noteFile)
		} else if err := s.old.save(s.noteFile); err != nil {
			return err
		}
	}
	if !s.written {
		return nil
	}
	if !s.existed {
		return os.Remove(s.real)
	}
	draft, err := newDraft(s.real, s.before, s.info, s.shared)
	if err == nil {
		err = os.Rename(draft, s.real)
	}
	return err
}

// newDraft writes a file beside path that is to take its place, with the mode
// and owner of the one that is there; a new one is for the user alone or, when
// shared, for whom its directory is.
func newDraft(path string, data []byte, like fs.FileInfo, shared bool) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	name = f.Name()
	if like == nil {
		if like, _ = os.Stat(filepath.Dir(path)); like != nil {
			keepOwner(f, like)
			if shared {
				err = f.Chmod(like.Mode().Perm() & 0o666)
			}
		}
	} else {
		keepOwner(f, like)
		err = f.Chmod(like.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(name)
		return "", err
	}
	return name, nil
}

// makeDirs makes a directory and what is above it, and says which were not
// there, outermost first. Their modes are as newDraft's.
func makeDirs(dir string, shared bool) (made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	slices.Reverse(made)
	for i, d := range made {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return made[:i], err
		}
		if like, err := os.Stat(filepath.Dir(d)); err == nil {
			if f, err := os.Open(d); err == nil {
				keepOwner(f, like)
				f.Close()
			}
			if shared {
				os.Chmod(d, like.Mode().Perm())
			}
		}
	}
	return made, nil
}

// syncDir makes a rename durable, where the system can.
func syncDir(dir string) {
	if f, err := os.Open(dir); err == nil {
		f.Sync()
		f.Close()
	}
}
