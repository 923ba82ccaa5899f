//go:build !unix

package main

import "errors"

func openAppend(b *bench) (cell, error) { return nil, errors.ErrUnsupported }
