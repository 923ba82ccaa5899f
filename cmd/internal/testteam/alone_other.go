//go:build !unix

package testteam

func runAlone() {}
