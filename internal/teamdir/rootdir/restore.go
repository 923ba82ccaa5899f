package rootdir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/internal/durable"
)

// RestoringFile in a root says that a restore has begun and not ended: it runs, was killed, or failed.
const RestoringFile = ".restoring"

// UnfinishedError says that a restore into a root did not finish.
type UnfinishedError struct {
	Root   string `json:"-"`
	File   string `json:"file"`   // the backup; "" if that is not known
	SHA256 string `json:"sha256"` // of its content
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a restore of %s into %s did not finish", cmp.Or(e.File, "a backup"), e.Root)
}

// CheckRestored returns an *UnfinishedError if a restore into a root did not finish.
func CheckRestored(root string) error {
	if _, err := os.Lstat(filepath.Join(root, RestoringFile)); durable.IsAbsent(err) {
		return nil
	}
	e := &UnfinishedError{}
	dir, err := durable.Open(root)
	if err == nil {
		defer dir.Close()
		data, _ := dir.ReadFile(RestoringFile, 1<<16)
		err = json.Unmarshal(data, e)
	}
	if err != nil {
		e = &UnfinishedError{} // somebody else has written it
	}
	e.Root = root
	return e
}
