// Package headers keeps what is asked of messages most often, so that a look opens few of their files.
//
// A cache is one file for a directory of messages: their ids in order, a row for each, and the beginnings of their texts.
// It is never the truth. Whoever looks makes it, and replaces it whole; whoever sends or hands over mail does not. It is
// valid while the directory is the same one and has not changed. A row stays valid, since a message file never changes.
// Checksums tell what a power cut has left, so nothing is synced, and nothing is locked: of two writers the last one
// counts. A file that is damaged or of another version is no cache.
//
// On disk, all numbers little-endian:
//
//	64 bytes   magic, stamp, how many messages and known rows, flags of all rows, lengths, a checksum of each part
//	16 each    the ids, ascending
//	64 each    the rows; absent if none is known
//	           the texts
//
// A database does not pay. In a new process with 100,000 messages, in milliseconds of processor, bbolt (unsynced, with its
// freelist) and this file took 0.2 and 1 for the newest, 0.03 and 7 for the answers of one, 0.5 and 35 to add a message; but
// before one is added the folder is listed, which takes 100, and most folders have a day's messages. For that it
// brings a lock, and has to be begun anew after a boot.
package headers

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"hash/fnv"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// Key is an id as bytes, which sort as ids do. The zero Key is that of no id.
type Key [16]byte

// KeyOf returns the key of an id.
func KeyOf(id wire.ID) (k Key) {
	if len(id) != 36 {
		return k
	}
	var digits [32]byte
	n := 0
	for i := range len(id) {
		if id[i] != '-' && n < len(digits) {
			digits[n] = id[i]
			n++
		}
	}
	hex.Decode(k[:], digits[:])
	return k
}

// ID returns the id.
func (k Key) ID() wire.ID {
	var b [36]byte
	hex.Encode(b[:8], k[:4])
	hex.Encode(b[9:13], k[4:6])
	hex.Encode(b[14:18], k[6:8])
	hex.Encode(b[19:23], k[8:10])
	hex.Encode(b[24:], k[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return wire.ID(b[:])
}

// IsBefore reports whether the key's id is before another one.
func (k Key) IsBefore(other Key) bool { return bytes.Compare(k[:], other[:]) < 0 }

// Flags say what a message has.
type Flags uint32

// The flags.
const (
	isKnown    Flags = 1 << iota
	IsReply          // it has in_reply_to
	IsAck            // its type
	IsInput          // human_input
	HasDue           // due_at
	HasChoices       //
	WantsAck         // requires_ack
	WantsReply       // reply_wanted is yes
	IsUrgent         //
	IsWhole          // Text is all of the text
)

// Header is what a cache keeps of a message.
type Header struct {
	ID, InReplyTo, Thread Key // Thread is the message's own id if it began one
	Due                   time.Time
	Flags
	About string // type, sender and recipients, with a space between two
	Text  string // the beginning of subject and body, in lower case
}

// maxText is how many bytes of subject and body are kept: most messages have less.
const maxText = 1000

// Of returns the header of a message.
func Of(m *wire.Message) Header {
	h := Header{ID: KeyOf(m.ID), InReplyTo: KeyOf(m.InReplyTo), Thread: KeyOf(m.ThreadID()), Due: m.DueAt, Flags: isKnown, Text: LowerText(m)}
	about := []string{m.Kind(), m.From.String()}
	for _, a := range m.To {
		about = append(about, a.String())
	}
	h.About = strings.ReplaceAll(strings.Join(about, " "), "\n", " ")
	has := func(flag Flags, is bool) {
		if is {
			h.Flags |= flag
		}
	}
	has(IsReply, m.InReplyTo != "")
	has(IsAck, m.Type == wire.TypeAck)
	has(IsInput, m.Type == wire.TypeHumanInput)
	has(HasDue, !m.DueAt.IsZero())
	has(HasChoices, len(m.Choices) > 0)
	has(WantsAck, m.RequiresAck)
	has(WantsReply, m.ReplyWanted == "yes")
	has(IsUrgent, m.Urgent())
	has(IsWhole, len(h.Text) <= maxText)
	h.Text = strings.Clone(h.Text[:min(len(h.Text), maxText)])
	return h
}

// LowerText is the text in which words are looked for.
func LowerText(m *wire.Message) string { return strings.ToLower(m.Subject + "\n" + m.Body) }

// Has reports whether a message has all of these flags.
func (f Flags) Has(all Flags) bool { return f&all == all }

// Stamp tells a state of a directory from all others. The zero Stamp is that of none.
type Stamp struct {
	at  int64
	dir uint64
}

// settled is how old the last change of a directory must be: file systems have clocks of up to two seconds.
const settled = 2500 * time.Millisecond

// StampOf returns the stamp of a directory before it is listed. If it may change again without a trace, or the system does
// not tell directories apart, only IsSameDir counts, or nothing.
func StampOf(dir fs.FileInfo) (s Stamp) {
	if id := durable.ID(dir); id != "" {
		sum := fnv.New64a()
		sum.Write([]byte(id))
		s.dir = sum.Sum64()
	}
	if age := time.Since(dir.ModTime()); age > settled {
		s.at = dir.ModTime().UnixNano()
	}
	return s
}

// Unsettled returns the stamp of the directory whatever is in it.
func (s Stamp) Unsettled() Stamp { return Stamp{dir: s.dir} }

// IsSameDir reports whether both stamps are the same directory's.
func (s Stamp) IsSameDir(other Stamp) bool { return s.dir != 0 && s.dir == other.dir }

// IsSettled reports whether the directory is known to have the same content as long as it has this stamp.
func (s Stamp) IsSettled() bool { return s.at != 0 && s.dir != 0 }

// Part is how much of a cache is read; each includes those before it.
type Part int

// The parts.
const (
	IDs Part = iota
	Rows
	Texts
)

// Cache is the content of a cache file.
type Cache struct {
	Stamp Stamp
	Known int   // how many rows are known
	Flags Flags // of any of them

	ids, rows, texts []byte
	text             string // texts, once one is asked for
}

const (
	magic   = "atm hdr1" // another number with every change of a flag or a row: a file of another version is no cache
	idSize  = 16
	rowSize = 64
	maxLen  = 1 << 26 // messages in a directory
)

var table = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }) // a quarter of a millisecond

// New returns an empty cache for a directory, with room for so many messages.
func New(stamp Stamp, room int, withRows bool) *Cache {
	c := &Cache{Stamp: stamp, ids: make([]byte, 0, room*idSize)}
	if withRows {
		c.rows = make([]byte, 0, room*rowSize)
	}
	return c
}

// Len returns how many messages the directory has.
func (c *Cache) Len() int { return len(c.ids) / idSize }

// Key returns the id of the i-th message.
func (c *Cache) Key(i int) Key { return Key(c.ids[i*idSize:]) }

// Header returns the header of the i-th message, if it is known and was read: its About and Text only with Texts.
func (c *Cache) Header(i int) (h Header, ok bool) {
	if len(c.rows) < (i+1)*rowSize {
		return h, false
	}
	row := c.rows[i*rowSize:][:rowSize]
	h.Flags = Flags(binary.LittleEndian.Uint32(row[40:]))
	if !h.Has(isKnown) {
		return h, false
	}
	h.ID, h.InReplyTo, h.Thread = c.Key(i), Key(row), Key(row[16:])
	if due := int64(binary.LittleEndian.Uint64(row[32:])); h.Has(HasDue) {
		h.Due = time.Unix(0, due).UTC()
	}
	if len(c.text) != len(c.texts) {
		c.text = string(c.texts)
	}
	if at, about, text := number(row[44:]), number(row[48:]), number(row[52:]); uint64(at)+uint64(about)+uint64(text) <= uint64(len(c.text)) {
		h.About, h.Text = c.text[at:][:about], c.text[at+about:][:text]
	}
	return h, true
}

// Add adds a message, whose id is behind all others. Without a header its row is not known.
func (c *Cache) Add(k Key, h *Header) {
	c.ids = append(c.ids, k[:]...)
	if c.rows == nil {
		return
	}
	row := [rowSize]byte{}
	if h != nil {
		copy(row[:], h.InReplyTo[:])
		copy(row[16:], h.Thread[:])
		if h.Has(HasDue) {
			binary.LittleEndian.PutUint64(row[32:], uint64(h.Due.UnixNano()))
		}
		binary.LittleEndian.PutUint32(row[40:], uint32(h.Flags))
		binary.LittleEndian.PutUint32(row[44:], uint32(len(c.texts)))
		binary.LittleEndian.PutUint32(row[48:], uint32(len(h.About)))
		binary.LittleEndian.PutUint32(row[52:], uint32(len(h.Text)))
		c.texts = append(append(c.texts, h.About...), h.Text...)
		c.Known++
		c.Flags |= h.Flags
	}
	c.rows = append(c.rows, row[:]...)
}

// Write replaces a cache file. Its directory must be there.
func (c *Cache) Write(root *durable.Root, name string) error {
	var head [64]byte
	copy(head[:], magic)
	for i, n := range []uint64{uint64(c.Stamp.at), c.Stamp.dir, uint64(c.Len()), uint64(c.Known)<<32 | uint64(c.Flags), uint64(len(c.texts))} {
		binary.LittleEndian.PutUint64(head[8+8*i:], n)
	}
	for i, part := range [][]byte{c.ids, c.rows, c.texts} {
		binary.LittleEndian.PutUint32(head[48+4*i:], crc32.Checksum(part, table()))
	}
	binary.LittleEndian.PutUint32(head[60:], crc32.Checksum(head[:60], table()))
	return root.Replace(name, slices.Concat(head[:], c.ids, c.rows, c.texts), false)
}

// Read returns the parts of a cache file that are asked for; nil: it is not there, or not one that Write has written. Of one
// whose rows lack some of these flags all, only the ids are read: no message is with them.
func Read(root *durable.Root, name string, part Part, with Flags) *Cache {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	var head [64]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || string(head[:8]) != magic || number(head[60:]) != crc32.Checksum(head[:60], table()) {
		return nil
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8+8*i:]) }
	c := &Cache{Stamp: Stamp{int64(n(0)), n(1)}, Known: int(n(3) >> 32), Flags: Flags(n(3))}
	if c.Known == int(n(2)) && !c.Flags.Has(with) {
		part = IDs
	}
	sizes, at := []int64{int64(n(2)) * idSize, 0, int64(n(4))}, int64(len(head))
	if c.Known > 0 {
		sizes[1] = int64(n(2)) * rowSize
	}
	info, err := f.Stat()
	if err != nil || n(2) > maxLen || info.Size() != at+sizes[0]+sizes[1]+sizes[2] {
		return nil
	}
	for i, to := range []*[]byte{&c.ids, &c.rows, &c.texts}[:part+1] {
		*to = make([]byte, sizes[i])
		if _, err := f.ReadAt(*to, at); err != nil || number(head[48+4*i:]) != crc32.Checksum(*to, table()) {
			return nil
		}
		at += sizes[i]
	}
	return c
}

func number(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
