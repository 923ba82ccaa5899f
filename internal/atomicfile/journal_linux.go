package atomicfile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// journals remembers what is known of devices.
var journals struct {
	sync.Mutex
	at map[uint64]journal
}

// journal says whether d lies on an ext4 (or ext2) without a journal. There the
// number of a file's names is in memory only, and the sync of a directory does
// not write it: a file that was made without a name, synced and then linked has
// none on the disk, and e2fsck removes it after a power cut. (Of 30 messages 8
// were gone.) With a journal both are one transaction.
func (d *Dir) journal() journal {
	if d.fault != nil {
		return hasJournal // a test meets the same calls on every disk
	}
	dev := d.file.known().Dev
	journals.Lock()
	defer journals.Unlock()
	j, known := journals.at[dev]
	if !known {
		j = journalOf(d.fd(), dev)
		if journals.at == nil {
			journals.at = map[uint64]journal{}
		}
		journals.at[dev] = j
	}
	return j
}

// journalOf asks procfs, which has a directory for each ext4 and one for each
// journal, by the device's name.
func journalOf(fd int, dev uint64) journal {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err == nil && st.Type != unix.EXT4_SUPER_MAGIC {
		return hasJournal
	} else if err != nil {
		return unknownJournal
	}
	link, err := os.Readlink("/sys/dev/block/" + strconv.Itoa(int(unix.Major(dev))) + ":" + strconv.Itoa(int(unix.Minor(dev))))
	if err != nil {
		return unknownJournal
	}
	name := filepath.Base(link)
	if _, err := os.Stat("/proc/fs/ext4/" + name); err != nil {
		return unknownJournal
	}
	all, err := os.ReadDir("/proc/fs/jbd2")
	for _, j := range all {
		if strings.HasPrefix(j.Name(), name+"-") {
			return hasJournal
		}
	}
	if err != nil && !Absent(err) {
		return unknownJournal
	}
	return noJournal
}
