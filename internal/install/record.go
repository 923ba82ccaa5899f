package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/confedit"
)

// record is what is noted of one edited file, to take it back exactly: a JSON
// file of its own below the user's state directory, install/TOOL.HASH.json,
// HASH being that of the file's path. It holds no content of the file but what
// an edit replaced.
type record struct {
	Path    string              `json:"path"`
	Existed bool                `json:"existed"`          // the file was there before the first edit
	Dirs    []string            `json:"dirs,omitempty"`   // directories made for it, outermost first
	After   string              `json:"after"`            // SHA-256 of the file as we left it
	Exact   bool                `json:"exact"`            // Undo leads to what was there before us
	Undo    []confedit.Splice   `json:"undo"`             // from the file as we left it
	Made    []string            `json:"made,omitempty"`   // containers that were not there: "hooks", "hooks.Stop"
	Values  map[string][]string `json:"values,omitempty"` // what we put into lists and members, by their place
	Was     map[string]string   `json:"was,omitempty"`    // strings that we replaced
}

// next is a record that goes on where this one ends; r may be nil.
func (r *record) next() *record {
	n := &record{Exact: true}
	if r != nil {
		*n = *r
		n.Made = slices.Clone(r.Made)
		n.Dirs = slices.Clone(r.Dirs)
	}
	n.Values, n.Was = map[string][]string{}, map[string]string{}
	if r != nil {
		for k, v := range r.Values {
			n.Values[k] = slices.Clone(v)
		}
		for k, v := range r.Was {
			n.Was[k] = v
		}
	}
	return n
}

// made reports whether a container may go when it is empty: we made it, or
// nothing is known.
func (r *record) made(place string) bool { return r == nil || slices.Contains(r.Made, place) }

func (r *record) make(place string) { r.Made = union(r.Made, []string{place}) }

// values are what we put at a place; ok is false where nothing is known.
func (r *record) values(place string) (v []string, ok bool) {
	if r == nil {
		return nil, false
	}
	return r.Values[place], true
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// recordFile is where the record of a file is kept, "" where nothing can be.
func (p *Place) recordFile(tool, real string) string {
	if p.State == "" {
		return ""
	}
	return filepath.Join(p.State, "install", fmt.Sprintf("%s.%s.json", tool, hash([]byte(real))[:16]))
}

// readRecord reads a record; one that is none, or another file's, counts as
// missing.
func readRecord(file, real string) *record {
	data, err := os.ReadFile(file)
	var r record
	if file == "" || err != nil || json.Unmarshal(data, &r) != nil || r.Path != real {
		return nil
	}
	return &r
}

// save writes the record. Only what cannot be written is an error.
func (r *record) save(file string) error {
	if file == "" {
		return fmt.Errorf("there is no state directory")
	}
	made, err := makeDirs(filepath.Dir(file), false)
	if err != nil {
		return err
	}
	r.Dirs = union(r.Dirs, made)
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	draft, err := newDraft(file, append(data, '\n'), nil, false)
	if err != nil {
		return err
	}
	if err := os.Rename(draft, file); err != nil {
		os.Remove(draft)
		return err
	}
	return nil
}

// forget removes what was noted of some files, and the directories that were
// made with them, as far as they are empty.
func forget(sheets []*sheet) {
	var dirs []string
	for _, s := range sheets {
		if s.noteFile != "" && os.Remove(s.noteFile) == nil {
			dirs = append(dirs, filepath.Dir(s.noteFile))
		}
		if s.old != nil {
			dirs = union(dirs, s.old.Dirs)
		}
		if s.new != nil {
			dirs = union(dirs, s.new.Dirs)
		}
	}
	// What is inside goes before what it is in.
	depth := func(d string) int { return strings.Count(d, string(filepath.Separator)) }
	slices.SortStableFunc(dirs, func(a, b string) int { return depth(b) - depth(a) })
	for _, d := range dirs {
		os.Remove(d) // not while it holds anything
	}
}
