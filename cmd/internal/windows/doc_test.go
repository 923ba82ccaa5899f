// Package windows runs the Windows program, which reads and writes mail, on Windows or under Wine. It has tests only.
//
//	make windows
//
// The Wine of Debian 12 lacks what Go has asked of Windows since 2016: a source of random numbers, and a way to remove
// files that are open. Three lines of Go's own library are changed for that build, which the tests make themselves.
package windows
