package atomicfile

import (
	"io/fs"
	"os"
)

// Leads reports whether a path below the directory, with slashes, leads to a
// file that was described before and has this size: whether what is open is
// what lies there, as it was left. It opens nothing. A link at its end is not
// followed; one on the way may be, and then leads to the same file. False says
// nothing.
func (d *Dir) Leads(path string, to fs.FileInfo, size int64) bool { return d.leads(path, to, size) }

// Whole reports whether an open file has this size, and a name somewhere.
func (d *Dir) Whole(f *os.File, size int64) bool { return whole(f, size) }
