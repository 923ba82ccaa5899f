// Package packaging installs what a release brings, uses it, and removes it. It has tests only.
//
//	make dist-test
package packaging
