// Package tarball writes and reads tar archives as far as a backup needs them:
// regular files and directories, in POSIX's pax format, which every tar reads;
// and of what other programs write names, sizes and times of such entries in the
// ustar, pax and GNU formats. Anything else is an entry of kind Other.
//
// It exists for what archive/tar brings along: os/user, and with that, in a
// program that was built beside a C compiler, the C library. Every command of
// atm started a third slower for it, though only two make archives.
package tarball

import (
	"errors"
	"time"
)

// Kind is what an entry is.
type Kind int

const (
	File Kind = iota
	Dir
	Other // a link, a device, a sparse file
)

// Header describes an entry.
type Header struct {
	Name    string // with slashes; a directory's may end with one
	Kind    Kind
	Size    int64     // of its content, in bytes
	ModTime time.Time // to the nanosecond
}

// ErrFormat says that what is read is no tar archive, or a damaged one.
var ErrFormat = errors.New("not the format of a tar archive")

// A block, and where its fields begin and end. POSIX.1-2017, pax, "ustar
// Interchange Format".
const blockSize = 512

type block [blockSize]byte

type span struct{ from, to int }

var (
	nameField   = span{0, 100}
	modeField   = span{100, 108}
	uidField    = span{108, 116}
	gidField    = span{116, 124}
	sizeField   = span{124, 136}
	mtimeField  = span{136, 148}
	sumField    = span{148, 156}
	magicField  = span{257, 265}
	prefixField = span{345, 500}
)

const (
	kindAt    = 156
	paxMagic  = "ustar\x0000"
	maxOctal  = 1<<33 - 1 // eleven digits
	blanks    = "        "
	paxKind   = 'x'
	paxGlobal = 'g'
)

func (b *block) field(s span) []byte { return b[s.from:s.to] }

// sum is the checksum of a header, its own field taken as blanks; signed as some
// old programs made it.
func (b *block) sum() (unsigned, signed int64) {
	for i, c := range b {
		if i >= sumField.from && i < sumField.to {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return unsigned, signed
}

// padding is how many bytes are missing to a whole block.
func padding(size int64) int64 { return -size & (blockSize - 1) }
