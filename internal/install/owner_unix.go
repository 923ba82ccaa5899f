//go:build unix

package install

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner of another: root may edit for somebody
// else, who then has to be able to edit too. Anybody else's files are their
// own already, but for the group.
func keepOwner(f *os.File, like fs.FileInfo) {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		if os.Geteuid() == 0 {
			f.Chown(int(st.Uid), int(st.Gid))
		} else if int(st.Uid) == os.Geteuid() && !like.IsDir() {
			f.Chown(-1, int(st.Gid))
		}
	}
}
