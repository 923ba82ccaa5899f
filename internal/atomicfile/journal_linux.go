package atomicfile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// journals remembers of which devices it is known whether they have one.
var journals struct {
	sync.Mutex
	none map[uint64]bool
}

// unjournaled reports whether d lies on an ext4 (or ext2) without a journal. There
// the number of a file's names is in memory only, and the sync of a directory
// does not write it: a file that was made without a name, synced and then linked
// has none on the disk, and e2fsck removes it after a power cut. (Of 30 messages
// 8 were gone.) With a journal both are one transaction.
func (d *Dir) unjournaled() bool {
	dev := d.file.known().Dev
	journals.Lock()
	defer journals.Unlock()
	none, known := journals.none[dev]
	if !known {
		none = withoutJournal(d.fd(), dev)
		if journals.none == nil {
			journals.none = map[uint64]bool{}
		}
		journals.none[dev] = none
	}
	return none
}

// withoutJournal asks procfs, which has a directory for each ext4 and one for each
// journal, by the device's name. Where it cannot tell, there is a journal.
func withoutJournal(fd int, dev uint64) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil || st.Type != unix.EXT4_SUPER_MAGIC {
		return false
	}
	link, err := os.Readlink("/sys/dev/block/" + strconv.Itoa(int(unix.Major(dev))) + ":" + strconv.Itoa(int(unix.Minor(dev))))
	if err != nil {
		return false
	}
	name := filepath.Base(link)
	if _, err := os.Stat("/proc/fs/ext4/" + name); err != nil {
		return false
	}
	all, err := os.ReadDir("/proc/fs/jbd2")
	for _, j := range all {
		if strings.HasPrefix(j.Name(), name+"-") {
			return false
		}
	}
	return err == nil || Absent(err)
}
