package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// ID is the id of a message: a UUIDv7 in lower case, with hyphens. Its first
// 48 bits are the milliseconds since 1970, so ids sort by time of making.
//
// (Made here rather than with google/uuid: that package imports net and
// database/sql/driver, a tenth of the start-up of a Go program, and `atm send`
// is started thousands of times a day.)
type ID string

var lastID struct {
	sync.Mutex
	stamp int64 // milliseconds<<12 | fraction
}

// NewID makes an id of the present moment. Ids made by one process ascend,
// also within a millisecond and when the clock is set back. May be called
// concurrently.
func NewID() ID { return newID(time.Now()) }

func newID(now time.Time) ID {
	ns := now.UnixNano()
	stamp := ns/1e6<<12 | (ns%1e6)>>8
	lastID.Lock()
	if stamp <= lastID.stamp {
		stamp = lastID.stamp + 1
	}
	lastID.stamp = stamp
	lastID.Unlock()
	var u [16]byte
	// The runtime's ChaCha8, seeded by the system for every process: ids are to
	// be unique, nobody relies on their being secret.
	binary.BigEndian.PutUint64(u[8:], rand.Uint64())
	binary.BigEndian.PutUint64(u[:8], uint64(stamp>>12)<<16|uint64(stamp&0xfff))
	return formatID(u)
}

// Derive makes the id of something that follows from parent, such as its
// acknowledgement: the same purpose, parent and author always give the same
// id, so that the same act twice is the same message. It has the time bits of
// its parent.
func Derive(purpose string, parent ID, author Address) ID {
	sum := sha256.Sum256([]byte(purpose + "\x00" + string(parent) + "\x00" + author.String()))
	var u [16]byte
	copy(u[:], sum[:16])
	if p, ok := parent.bytes(); ok {
		copy(u[:6], p[:6])
	}
	return formatID(u)
}

func formatID(u [16]byte) ID {
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], u[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], u[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], u[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], u[10:16])
	return ID(b[:])
}

// IsID reports whether s is exactly the id of a message: lower case, hyphens
// in place, version 7.
func IsID(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' || s[14] != '7' {
		return false
	}
	if c := s[19]; c != '8' && c != '9' && c != 'a' && c != 'b' {
		return false
	}
	return lowerHex(s[:8]) && lowerHex(s[9:13]) && lowerHex(s[14:18]) && lowerHex(s[19:23]) && lowerHex(s[24:])
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; c-'0' > 9 && c-'a' > 5 {
			return false
		}
	}
	return true
}

// ParseID reads a full id as people and other programs write it: any case,
// with or without hyphens, urn:uuid: or braces.
func ParseID(s string) (ID, error) {
	if IsID(s) { // as atm writes it
		return ID(s), nil
	}
	t := strings.ToLower(strings.TrimSpace(s))
	t = strings.TrimPrefix(t, "urn:uuid:")
	if strings.HasPrefix(t, "{") && strings.HasSuffix(t, "}") {
		t = t[1 : len(t)-1]
	}
	if len(t) == 32 && !strings.Contains(t, "-") {
		t = t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
	}
	if !IsID(t) {
		return "", fmt.Errorf("%q is not a UUIDv7", s)
	}
	return ID(t), nil
}

func (id ID) bytes() (u [16]byte, ok bool) {
	if len(id) != 36 {
		return u, false
	}
	if IsID(string(id)) {
		at := 0
		for i := range u {
			if id[at] == '-' {
				at++
			}
			u[i] = nibble(id[at])<<4 | nibble(id[at+1])
			at += 2
		}
		return u, true
	}
	b, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
	if err != nil || len(b) != 16 {
		return u, false
	}
	copy(u[:], b)
	return u, true
}

// nibble is the value of a digit of lowerHex.
func nibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// Time is the moment that the id's first 48 bits name, in UTC; the zero time
// for what is no id.
func (id ID) Time() time.Time {
	u, ok := id.bytes()
	if !ok {
		return time.Time{}
	}
	var b [8]byte
	copy(b[2:], u[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:]))).UTC()
}

// Day is the directory of done messages that the id belongs to: yyyy-mm-dd in
// UTC.
func (id ID) Day() string { return id.Time().Format(time.DateOnly) }

// Hex is the id's 32 digits without hyphens; what people quote is a prefix or
// a suffix of it.
func (id ID) Hex() string { return strings.ReplaceAll(string(id), "-", "") }

// Short is the last n digits of the id (at least 6).
func (id ID) Short(n int) string {
	if n < 6 {
		n = 6
	}
	if len(id) == 36 && n <= 12 && id[23] == '-' { // all of the last group
		return string(id[36-n:])
	}
	h := id.Hex()
	if n > len(h) {
		n = len(h)
	}
	return h[len(h)-n:]
}

// Fragment is what people quote of an id: 4 or more hexadecimal digits of its
// beginning or its end, or the whole.
type Fragment string

// ParseFragment checks s: hex digits, hyphens and case do not matter.
func ParseFragment(s string) (Fragment, error) {
	t := strings.ToLower(strings.ReplaceAll(strings.Trim(s, " #,.;:()[]<>\"'`"), "-", ""))
	if len(t) < 4 || len(t) > 32 {
		return "", fmt.Errorf("%q is not an id: 4 to 32 hex digits", s)
	}
	for i := 0; i < len(t); i++ {
		if c := t[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return "", fmt.Errorf("%q is not an id: 4 to 32 hex digits", s)
		}
	}
	return Fragment(t), nil
}

// ID is the fragment as a full id, if it is one.
func (f Fragment) ID() (ID, bool) {
	id, err := ParseID(string(f))
	return id, err == nil
}

// Matches reports whether the fragment is a beginning or an end of id.
func (f Fragment) Matches(id ID) bool {
	h := id.Hex()
	return strings.HasPrefix(h, string(f)) || strings.HasSuffix(h, string(f))
}
