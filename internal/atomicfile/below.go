package atomicfile

import (
	"io/fs"
	"strings"
)

// LstatBelow describes what lies at a path below the directory; a link at its
// end is not followed, one on the way may be. It says whether a path leads to
// a file that is open already (SameFile), and opens nothing.
func (d *Dir) LstatBelow(names ...string) (fs.FileInfo, error) {
	for _, n := range names {
		if !oneComponent(n) {
			return nil, d.wrap("stat", n, fs.ErrInvalid)
		}
	}
	return d.lstat(strings.Join(names, "/"))
}
