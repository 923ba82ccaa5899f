package drop

import (
	"cmp"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// unfinishedNames matches the names that programs give to a file until it is whole, or to a copy or a lock beside it.
// The group is the name that the file is to get. The names are from the programs' manuals and from the lists of what
// synchronizers leave out (Nextcloud's sync-exclude.lst, Syncthing's and Resilio's ignore lists, OneDrive's and
// Dropbox's help).
var unfinishedNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)^(?:` + strings.Join([]string{
		// Hidden: .x.AbCdEf (rsync), .syncthing.x.tmp, .x.~1a2b (Nextcloud), .goutputstream-… (GNOME), .x.swp (vim),
		// .#x (Emacs), .x.kate-swp, .~lock.x# (LibreOffice), .x.icloud, .fuse_hidden…, .nfs….
		`\.(.*)`,
		`(.*)~`,                    // backups of vim, Emacs, gedit
		`#(.*)#`,                   // Emacs saves these by itself
		`~\$(.*)`,                  // Microsoft Office: open elsewhere
		`(.*)\.sb-.*`,              // macOS: x.txt.sb-1a2b3c4d-AbCdEf, while it is saved
		`(.*)\.tmp\.[0-9].*`,       // Node's atomic writers: x.tmp.4711.1764150000
		`(.*)___jb_(?:tmp|old)___`, // JetBrains
		`(.*)\.(?:` + strings.Join([]string{
			"te?mp",                               // Microsoft Office, OneDrive, Syncthing on Windows, and many others
			"crdownload", "opdownload", "partial", // Chrome and Edge, Opera, rclone
			"part", "ytdl", // Firefox, KDE, Nextcloud, Transmission; yt-dlp
			"filepart", "fdmdownload", // WinSCP, Free Download Manager
			"aria2", "lftp-pget-status", // what these two keep beside a download
			"!ut", "!qb", "bc!", "!sync", // µTorrent, qBittorrent, BitComet, Resilio
			"sw[op]", "vsctmp", // vim, Visual Studio Code
		}, "|") + `)`,
	}, "|") + `)$`)
})

// FinishedName returns the name that a dropped file is to get once it is whole. isUnfinished says that it has another one
// now, and so waits.
func FinishedName(name string) (finished string, isUnfinished bool) {
	for name != "" {
		groups := unfinishedNames().FindStringSubmatch(name)
		if groups == nil {
			break
		}
		name, isUnfinished = cmp.Or(groups[1:]...), true
	}
	if name == "" || slices.Contains(InboxDirs, name) {
		name = "unnamed"
	}
	return name, isUnfinished
}

// litter are names of what systems and editors put into any directory. It is never mail. Finder's ._x holds what only
// macOS knows of x, and vim creates 4913 to see what it may do.
var litter = []string{".ds_store", ".localized", ".directory", "desktop.ini", "thumbs.db", "ehthumbs.db", "icon\r", "4913"}

// IsLitter reports whether a file is of no use to anybody but its system or editor.
func IsLitter(name string) bool {
	return slices.Contains(litter, strings.ToLower(name)) || strings.HasPrefix(name, "._")
}

// isBesideControl reports whether a download keeps what it still needs of a file in a second one. names is sorted.
func isBesideControl(names []string, name string) bool {
	for _, end := range []string{".aria2", ".lftp-pget-status"} {
		if _, isThere := slices.BinarySearch(names, name+end); isThere {
			return true
		}
	}
	return false
}

// unfinishedFor is how long an unfinished or empty file may be unchanged before it counts as left behind.
const unfinishedFor = time.Hour

// Why a file in inbox or new is not ingested. The codes are doctor's.
const (
	leftNotAFile   = "drop.not_a_file"
	LeftEmpty      = "drop.empty"
	leftUnfinished = "drop.named_unfinished"
	LeftUnreadable = "drop.unreadable"
)

var leftReasons = map[string]string{
	leftNotAFile:   "it is not a regular file, so atm never opens it",
	LeftEmpty:      "it is empty: atm waits until it has content",
	leftUnfinished: "it is named like an unfinished file: it is mail once it has another name",
	LeftUnreadable: "it cannot be read: permission denied",
}

// WhyLeft returns why an entry of inbox or new, which is neither the mailbox's own nor litter, is not ingested, or "".
// isOld says that it has been so for long, or always will be.
func WhyLeft(info fs.FileInfo, names []string) (code string, isOld bool) {
	_, isUnfinished := FinishedName(info.Name())
	isOld = time.Since(info.ModTime()) > unfinishedFor
	switch {
	case info.IsDir() && isUnfinished: // as a synchronizer's .stfolder
		return leftUnfinished, false
	case !info.Mode().IsRegular():
		return leftNotAFile, true
	case info.Size() == 0:
		return LeftEmpty, isOld
	case isUnfinished || isBesideControl(names, info.Name()):
		return leftUnfinished, isOld
	}
	return "", false
}
