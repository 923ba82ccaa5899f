package teamdir

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

// BeginRestore records that a backup, a file with that SHA-256, is being restored into the root, and that nobody has
// accepted the root since. It returns a *rootdir.UnfinishedError if the restore of another one did not finish. The record
// stays until EndRestore: what is half restored must not look whole.
func (r *Root) BeginRestore(file, sha256 string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	before, isUnfinished := errors.AsType[*rootdir.UnfinishedError](rootdir.CheckRestored(r.Path))
	if isUnfinished && before.SHA256 != sha256 {
		return before
	}
	record, err := json.Marshal(rootdir.UnfinishedError{File: file, SHA256: sha256})
	if err == nil {
		err = r.dir.Replace(rootdir.RestoringFile, append(record, '\n'), true)
	}
	if err == nil {
		err = r.dir.Replace(rootdir.RestoredFile, nil, true)
	}
	return err
}

// EndRestore removes the record of BeginRestore.
func (r *Root) EndRestore() error {
	err := r.dir.Remove(rootdir.RestoringFile)
	if err == nil {
		err = r.dir.Sync(".")
	}
	return err
}
