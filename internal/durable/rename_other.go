//go:build !linux && !darwin

package durable

import "errors"

func (r *Root) renameOnly(old, new string) error { return errors.ErrUnsupported }
