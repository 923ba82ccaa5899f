//go:build !unix

package output

import "io"

// Standard returns nil: see standard_unix.go.
func Standard() (out, err io.Writer) { return nil, nil }
