package teamdir

import (
	"os"
	"path/filepath"
)

func IsSameDir(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	first, err := os.Stat(a)
	second, bad := os.Stat(b)
	if err != nil || bad != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	return os.SameFile(first, second)
}
