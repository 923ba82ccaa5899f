//go:build !linux && !darwin

package acp

// Run is not to be had here: agents run on Linux and macOS.
func Run(Options) int { return 1 }
