package rootdir

import (
	"cmp"
	"encoding/json"
	"errors"
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
	if _, err := os.Lstat(filepath.Join(root, RestoringFile)); isAbsent(err) {
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

// BeginRestore records that a backup, a file with that SHA-256, is being restored into a root, and that nobody has
// accepted the root since. It returns an *UnfinishedError if the restore of another one did not finish. The record
// stays until EndRestore: what is half restored must not look whole.
func BeginRestore(root *durable.Root, file, sha256 string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	before, isUnfinished := errors.AsType[*UnfinishedError](CheckRestored(root.Path()))
	if isUnfinished && before.SHA256 != sha256 {
		return before
	}
	record, err := json.Marshal(UnfinishedError{File: file, SHA256: sha256})
	if err == nil {
		err = root.Replace(RestoringFile, append(record, '\n'), true)
	}
	if err == nil {
		err = root.Replace(RestoredFile, nil, true)
	}
	return err
}

// EndRestore removes the record of BeginRestore.
func EndRestore(root *durable.Root) error {
	err := root.Remove(RestoringFile)
	if err == nil {
		err = root.Sync(".")
	}
	return err
}
