// Package wine runs the Windows program under Wine: it reads and writes mail there. It has tests only.
//
//	make windows
//
// The Wine of Debian 12 lacks what Go has asked of Windows since 2016: a source of random numbers, and a way to remove
// files that are open. Three lines of Go's own library are changed for the build, which the tests make themselves.
package wine
