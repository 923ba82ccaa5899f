package atomicfile

import (
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// sound remembers of devices whether files without a name are.
var sound struct {
	sync.Mutex
	at map[uint64]bool
}

// unnamedIsSound reports whether a file that is synced before it has a name keeps
// the one that it is linked under, once the directory is synced. On an ext4
// without a journal it does not: the number of its names is in memory only, and
// e2fsck removes a file that has none on the disk. (8 of 30 messages were gone. A
// sync of the file after the link takes the directory along only while the kernel
// remembers the name: 3 of 400.) Where nobody has tried, it may not.
func (d *Dir) unnamedIsSound() bool {
	if d.fault != nil {
		return true // a test meets the same calls on every disk
	}
	dev := d.file.known().Dev
	sound.Lock()
	defer sound.Unlock()
	yes, known := sound.at[dev]
	if !known {
		yes = soundOn(d.fd(), dev)
		if sound.at == nil {
			sound.at = map[uint64]bool{}
		}
		sound.at[dev] = yes
	}
	return yes
}

// soundOn knows XFS and btrfs, and where nothing outlasts a power cut anyway. An
// ext4's journal has a directory in procfs whose name begins with the
// device's. (With calls that every start makes anyway: this is asked at each.)
func soundOn(fd int, dev uint64) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch st.Type {
	case unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return true
	case unix.EXT4_SUPER_MAGIC:
	default:
		return false
	}
	proc, err := openDir(unix.AT_FDCWD, "/proc/fs/jbd2", 0)
	if err != nil {
		return false
	}
	defer unix.Close(proc)
	device, found := "", false
	err = list(proc, func(journals []string) bool {
		for _, j := range journals {
			if device == "" {
				device = deviceName(dev)
			}
			found = found || device != "" && strings.HasPrefix(j, device+"-")
		}
		return !found
	})
	return found && err == nil
}

// deviceName is what the kernel calls a block device; "" if it does not say.
func deviceName(dev uint64) string {
	var buf [1 << 10]byte
	n, err := unix.Readlink("/sys/dev/block/"+strconv.Itoa(int(unix.Major(dev)))+":"+strconv.Itoa(int(unix.Minor(dev))), buf[:])
	if err != nil || n == len(buf) {
		return ""
	}
	path := string(buf[:n])
	return path[strings.LastIndexByte(path, '/')+1:]
}
