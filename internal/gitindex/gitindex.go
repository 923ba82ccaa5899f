// Package gitindex says which paths a git repository tracks, from its index
// file, without running git: git would read the configuration of a repository
// that nobody trusts yet.
//
// Versions 2, 3 and 4 are read, with SHA-1 and SHA-256, split indexes and
// sparse ones, as gitformat-index(5) describes them. Where only the object
// database could tell (below a directory that a sparse index does not spell
// out), and where a split index may have taken an entry back, a path counts as
// tracked: a caller that is about to write then leaves it alone.
package gitindex

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Tracked reports whether the index in gitDir, the directory of one worktree,
// has path, which is relative to the worktree's top, with slashes. A
// repository without an index tracks nothing. An index that cannot be read is
// an error, never a no.
func Tracked(gitDir, path string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	found := false
	look := func(name string) bool {
		found = found || covers(name, path)
		return !found
	}
	base, err := each(data, look)
	if err == nil && !found && base != "" {
		// The rest of a split index. That it was read by the entries of this one
		// does not matter here.
		data, err = os.ReadFile(filepath.Join(gitDir, "sharedindex."+base))
		if err == nil {
			_, err = each(data, look)
		}
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", filepath.Join(gitDir, "index"), err)
	}
	return found, nil
}

// folds says that names which differ in case may be one file.
const folds = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// covers reports whether an entry is path, or a directory of a sparse index
// that path lies in.
func covers(name, path string) bool {
	if strings.HasSuffix(name, "/") {
		if len(path) < len(name) {
			return false
		}
		path = path[:len(name)]
	}
	return name == path || folds && strings.EqualFold(name, path)
}

// errFormat is about an index that is none.
var errFormat = errors.New("this is no index that git wrote")

// each calls f with the names in an index, in their order, until it returns
// false. base names the file that a split index goes on in, in hexadecimal.
func each(data []byte, f func(name string) bool) (base string, err error) {
	if len(data) < 12 || string(data[:4]) != "DIRC" {
		return "", errFormat
	}
	version := binary.BigEndian.Uint32(data[4:])
	if version < 2 || version > 4 {
		return "", fmt.Errorf("an index of version %d, which this program does not know", version)
	}
	// The object format stands in the repository's configuration. Only one
	// reading of the file comes out even.
	for _, hash := range []int{20, 32} {
		names, base, ok := parse(data, version, hash)
		if !ok {
			continue
		}
		for _, n := range names {
			if !f(n) {
				break
			}
		}
		return base, nil
	}
	return "", errFormat
}

// parse reads an index with object names of so many bytes.
func parse(data []byte, version uint32, hash int) (names []string, base string, ok bool) {
	count := binary.BigEndian.Uint32(data[8:])
	end := len(data) - hash // the checksum, which may be left out as zeros
	at := 12
	prev := ""
	for range count {
		start := at
		at += 40 + hash + 2 // stat data, mode, size; object; flags
		if at > end {
			return nil, "", false
		}
		flags := binary.BigEndian.Uint16(data[at-2:])
		if flags&0x4000 != 0 {
			if version < 3 {
				return nil, "", false
			}
			at += 2
		}
		keep := 0
		if version == 4 {
			cut, n := offset(data[min(at, end):end])
			if n == 0 || cut > len(prev) {
				return nil, "", false
			}
			at += n
			keep = len(prev) - cut
		}
		if at > end {
			return nil, "", false
		}
		nul := bytes.IndexByte(data[at:end], 0)
		if nul < 0 {
			return nil, "", false
		}
		name := prev[:keep] + string(data[at:at+nul])
		if n := int(flags & 0xfff); n != 0xfff && n != len(name) {
			return nil, "", false
		}
		if name != "" && name < prev {
			return nil, "", false
		}
		at += nul + 1
		if version < 4 {
			for (at-start)%8 != 0 {
				if at >= end || data[at] != 0 {
					return nil, "", false
				}
				at++
			}
		}
		if name != "" { // a split index leaves the name out where it replaces an entry
			names, prev = append(names, name), name
		}
	}
	for at < end {
		if end-at < 8 {
			return nil, "", false
		}
		size := int64(binary.BigEndian.Uint32(data[at+4:]))
		if size > int64(end-at-8) {
			return nil, "", false
		}
		body := data[at+8 : at+8+int(size)]
		switch sig := string(data[at : at+4]); {
		case sig == "link":
			if len(body) < hash {
				return nil, "", false
			}
			if !bytes.Equal(body[:hash], make([]byte, hash)) {
				base = hex.EncodeToString(body[:hash])
			}
		case sig == "sdir":
			// Entries may be directories, which end in a slash.
		case sig[0] < 'A' || sig[0] > 'Z':
			return nil, "", false // not to be passed over by who does not know it
		}
		at += 8 + int(size)
	}
	return names, base, at == end
}

// offset reads a number as packs and version 4 write it; n is how many bytes
// it takes, 0 for none.
func offset(b []byte) (v, n int) {
	for i, c := range b {
		if i > 0 {
			v++
		}
		v = v<<7 | int(c&0x7f)
		if v > 1<<20 {
			return 0, 0
		}
		if c&0x80 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}
