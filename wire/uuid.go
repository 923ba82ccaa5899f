package wire

import (
	"encoding/hex"
	"errors"
	"strings"
)

// UUID is a UUID of any version, lower-case with hyphens. (ID is one of ours:
// version 7.)
type UUID string

// ParseUUID reads a UUID as Rust's uuid does: with or without hyphens, in any
// case, as a URN or in braces.
func ParseUUID(s string) (UUID, error) {
	bad := errors.New("must be a UUID")
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}"); !ok || len(inner) != 36 {
			return "", bad
		}
		s = inner
	} else if inner, ok := strings.CutPrefix(s, "urn:uuid:"); ok {
		if s = inner; len(s) != 36 {
			return "", bad
		}
	}
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return "", bad
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return "", bad
	}
	s = hex.EncodeToString(b)
	return UUID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]), nil
}
