package teams

import "syscall"

// remoteFS names the kind of the file system at a path if others than this
// kernel may change it, "" if not.
func remoteFS(path string) string {
	var st syscall.Statfs_t
	if syscall.Statfs(path, &st) != nil {
		return ""
	}
	// The constants are those of statfs(2) and linux/magic.h.
	switch uint32(st.Type) {
	case 0x6969:
		return "NFS"
	case 0x517b, 0xfe534d42, 0xff534d42:
		return "SMB"
	case 0x01021997:
		return "9p" // also WSL's view of Windows drives
	case 0x53464846:
		return "WSL's drvfs"
	case 0x65735546:
		return "FUSE" // also virtiofs, sshfs, Docker Desktop's shares
	case 0x786f4256:
		return "vboxsf"
	case 0xbacbacbc:
		return "vmhgfs"
	case 0x00c36400:
		return "Ceph"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x47504653:
		return "GPFS"
	case 0x01161970:
		return "GFS2"
	case 0x7461636f:
		return "OCFS2"
	}
	return ""
}
