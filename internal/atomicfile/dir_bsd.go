//go:build unix && !linux && !darwin

package atomicfile

func renameNoReplace(*Dir, string, *Dir, string) error { return errUnsupported }

func (d *Dir) openUnnamed() (draftFile, error) { return -1, errUnsupported }
func (dr *Draft) unnamed() bool                { return false }
func (dr *Draft) linkUnnamed(*Dir, string) error {
	return errUnsupported
}
func flushHint(draftFile) {}
