package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ID is a message id: a UUIDv7 in lower case, with hyphens. It begins with 48 bits of milliseconds since 1970.
type ID string

// NewID returns a new id. The ids of one process ascend, even if the clock is set back. Safe for concurrent use.
func NewID() ID { return ID(uuid.Must(uuid.NewV7()).String()) }

// Derive returns the id of a message that follows from parent, such as its acknowledgement: whoever repeats the act
// gets the same id. It keeps the time bits of parent.
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

// Next returns the derived id that a message takes if another one has this.
func (id ID) Next() ID { return Derive("next", id, Address{}) }

// AckID returns the id of a recipient's acknowledgement of a message, after n others with other outcomes. Acks sort by their
// ids in this order. Every machine derives the id without its own host; the host is mixed in when the ack leaves the
// machine, since two machines may each have a bob.
func AckID(id ID, recipient Address, n int) ID {
	purpose := "ack"
	if n > 0 {
		purpose, id = "ack "+strconv.Itoa(n), id.after(n)
	}
	return Derive(purpose, id, Address{Agent: recipient.Agent, Team: recipient.Team}).onHost(recipient.Host)
}

// after returns the id with a time that is n milliseconds later.
func (id ID) after(n int) ID {
	u, err := uuid.Parse(string(id))
	if err != nil {
		return id
	}
	binary.BigEndian.PutUint64(u[:8], binary.BigEndian.Uint64(u[:8])+uint64(n)<<16)
	return ID(u.String())
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

// ParseID reads a full id in any form that ParseUUID accepts.
func ParseID(s string) (ID, error) {
	if IsID(s) {
		return ID(s), nil
	}
	id, err := ParseUUID(strings.TrimSpace(s))
	if err != nil || !IsID(string(id)) {
		return "", fmt.Errorf("%q is not a UUIDv7", Clip(s, 64))
	}
	return ID(id), nil
}

// Time returns when the id was made, in UTC; the zero time if it is not a UUID.
func (id ID) Time() time.Time {
	u, err := uuid.Parse(string(id))
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(u[:8]) >> 16)).UTC()
}

// Day returns the name of the directory under done: yyyy-mm-dd in UTC, at most 9999-12-31.
func (id ID) Day() string {
	day := id.Time().Format(time.DateOnly)
	if len(day) > len(time.DateOnly) { // 48 bits reach to the year 10889
		day = "9999-12-31"
	}
	return day
}

// hex returns the 32 digits of the id without hyphens.
func (id ID) hex() string { return strings.ReplaceAll(string(id), "-", "") }

// Short returns the last n digits of the id, at least 6.
func (id ID) Short(n int) string {
	h := id.hex()
	return h[max(0, len(h)-max(n, 6)):]
}

// UUID is a UUID of any version, in lower case with hyphens.
type UUID string

// ParseUUID reads a UUID with or without hyphens, in any case, as a URN or in braces.
func ParseUUID(s string) (UUID, error) {
	if uuid.Validate(s) != nil { // uuid.Parse alone accepts any two bytes as braces
		return "", errors.New("must be a UUID")
	}
	return UUID(uuid.MustParse(s).String()), nil
}

// Fragment is a quoted part of an id: 4 or more digits of its beginning or its end.
type Fragment string

// ParseFragment reads a fragment. Hyphens, case and punctuation around it do not matter.
func ParseFragment(s string) (Fragment, error) {
	t := strings.ToLower(strings.ReplaceAll(strings.Trim(s, " #,.;:()[]<>\"'`"), "-", ""))
	if len(t) < 4 || len(t) > 32 || !isHex(t) {
		return "", fmt.Errorf("%q is not an id: 4 to 32 hex digits", s)
	}
	return Fragment(t), nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// ID returns the full id, if the fragment is one.
func (f Fragment) ID() (ID, bool) {
	id, err := ParseID(string(f))
	return id, err == nil
}

// Matches reports whether id begins or ends with the fragment.
func (f Fragment) Matches(id ID) bool {
	h := id.hex()
	return strings.HasPrefix(h, string(f)) || strings.HasSuffix(h, string(f))
}
