package doctor

import "golang.org/x/sys/unix"

// remoteKinds names the file systems that another kernel may change, by their constants in statfs(2) and linux/magic.h.
var remoteKinds = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xfe534d42: "SMB", 0xff534d42: "SMB", 0x01021997: "9p", 0x53464846: "WSL's drvfs",
	0x65735546: "FUSE", 0x786f4256: "vboxsf", 0xbacbacbc: "vmhgfs", 0x00c36400: "Ceph", 0x5346414f: "AFS", 0x6b414653: "AFS",
}

func fileSystemAt(path string) (fs fileSystem) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return fs
	}
	free := st.Bavail * uint64(st.Bsize)
	return fileSystem{remoteKind: remoteKinds[uint32(st.Type)], isReadOnly: st.Flags&unix.ST_RDONLY != 0,
		free: &free, isOutOfInodes: st.Files > 0 && st.Ffree == 0}
}
