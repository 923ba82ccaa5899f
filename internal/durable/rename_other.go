//go:build !linux

package durable

import "errors"

func (r *Root) renameOnly(old, new string) error { return errors.ErrUnsupported }
