//go:build !linux && !darwin

package acp

import "errors"

// Run is not to be had here: agents run on Linux and macOS.
func Run(Options) (int, error) { return 1, errors.ErrUnsupported }
