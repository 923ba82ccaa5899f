package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ID is the id of a message: a UUIDv7 in lower case, with hyphens. Its first 48 bits are the milliseconds
// since 1970, so ids sort by time of making.
type ID string

// NewID makes an id of the present moment. Ids made by one process ascend, also within a millisecond and
// when the clock is set back. May be called concurrently.
func NewID() ID { return ID(uuid.Must(uuid.NewV7()).String()) }

// Derive makes the id of something that follows from parent, such as its acknowledgement: the same act
// twice is the same message. It has the time bits of its parent.
func Derive(purpose string, parent ID, author Address) ID {
	sum := sha256.Sum256([]byte(purpose + "\x00" + string(parent) + "\x00" + author.String()))
	u := uuid.UUID(sum[:16])
	if p, err := uuid.Parse(string(parent)); err == nil {
		copy(u[:6], p[:6])
	}
	u[6] = u[6]&0x0f | 0x70 // version 7
	u[8] = u[8]&0x3f | 0x80 // the variant of RFC 9562
	return ID(u.String())
}

// AckID is the id of a recipient's acknowledgement of a message. One on another machine derives it without its
// host, which is added when the ack leaves: two machines may each have a bob.
func AckID(id ID, recipient Address) ID {
	return Derive("ack", id, Address{Agent: recipient.Agent, Team: recipient.Team}).onHost(recipient.Host)
}

func (id ID) onHost(host Name) ID {
	if host == "" {
		return id
	}
	return Derive("host "+string(host), id, Address{})
}

// IsID reports whether s is exactly an id: lower case, hyphens in place, version 7.
func IsID(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.Version() == 7 && u.Variant() == uuid.RFC4122 && u.String() == s
}

// ParseID reads a full id in any of the forms of ParseUUID.
func ParseID(s string) (ID, error) {
	id, err := ParseUUID(strings.TrimSpace(s))
	if err != nil || !IsID(string(id)) {
		return "", fmt.Errorf("%q is not a UUIDv7", s)
	}
	return ID(id), nil
}

// Time is the moment that the id names, in UTC; the zero time for what is no id.
func (id ID) Time() time.Time {
	u, err := uuid.Parse(string(id))
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(u[:8]) >> 16)).UTC()
}

// Day is the directory of done messages that the id belongs to: yyyy-mm-dd in UTC, at most 9999-12-31.
func (id ID) Day() string {
	day := id.Time().Format(time.DateOnly)
	if len(day) > len(time.DateOnly) { // an id may name years up to 10889
		day = "9999-12-31"
	}
	return day
}

// Hex is the id's 32 digits without hyphens; people quote a prefix or a suffix of it.
func (id ID) Hex() string { return strings.ReplaceAll(string(id), "-", "") }

// Short is the last n digits of the id (at least 6).
func (id ID) Short(n int) string {
	h := id.Hex()
	return h[max(0, len(h)-max(n, 6)):]
}

// UUID is a UUID of any version, lower-case with hyphens.
type UUID string

// ParseUUID reads a UUID: with or without hyphens, in any case, as a URN or in braces.
func ParseUUID(s string) (UUID, error) {
	// Parse alone takes any two bytes for braces.
	if uuid.Validate(s) != nil {
		return "", errors.New("must be a UUID")
	}
	return UUID(uuid.MustParse(s).String()), nil
}

// Fragment is what people quote of an id: 4 or more digits of its beginning or its end.
type Fragment string

// ParseFragment checks s: hex digits, hyphens and case do not matter.
func ParseFragment(s string) (Fragment, error) {
	t := strings.ToLower(strings.ReplaceAll(strings.Trim(s, " #,.;:()[]<>\"'`"), "-", ""))
	if len(t) < 4 || len(t) > 32 || !isHex(t) {
		return "", fmt.Errorf("%q is not an id: 4 to 32 hex digits", s)
	}
	return Fragment(t), nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

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
