//go:build darwin || freebsd

package main

import (
	"errors"
	"time"
)

func cpuTime(...int) (time.Duration, error) { return 0, errors.ErrUnsupported }
