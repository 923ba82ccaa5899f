//go:build unix && !linux && !darwin

package atomicfile

import "os"

func renameNoReplace(*Dir, string, *Dir, string) error { return errUnsupported }

func (d *Dir) openUnnamed() (*os.File, error) { return nil, errUnsupported }
func (dr *Draft) unnamed() bool               { return false }
func (dr *Draft) linkUnnamed(*Dir, string) error {
	return errUnsupported
}
func flushHint(*os.File) {}
