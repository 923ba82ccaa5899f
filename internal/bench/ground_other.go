//go:build !linux

package main

func spread(string)  {}
func syncAll(string) {}
