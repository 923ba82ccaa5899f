//go:build !linux && !darwin

package acpfront

import "errors"

// Run fails: agents run on Linux and macOS only.
func Run(Options) (int, error) { return 1, errors.ErrUnsupported }
