//go:build !linux

package main

import (
	"errors"
	"io"
)

const writerMark = "ATM_BENCH_WRITER"

func writer(io.Reader, io.Writer) {}

// watching is measured where there is inotify.
func (b *bench) watching() []*Case {
	return []*Case{{Open: func(*bench) (cell, error) { return nil, errors.ErrUnsupported }}}
}
