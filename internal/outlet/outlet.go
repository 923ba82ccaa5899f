// Package outlet shows messages and knows which of them were taken.
//
// A message may be marked as read only when somebody got it: a reader that is
// killed, a device that is full, `| head -3`, a reader that quits never consume
// a message whose bytes they did not get. What may be relied on, by what the
// output is:
//
//   - A file, a terminal, anything else but the following, and everything on
//     other systems than Linux: taken is what write returned for.
//   - A pipe on Linux: taken is what was read out of it. The bytes still in it
//     are counted; were some written by another process, they count as ours, so
//     that the error is on the side of showing again. Lines are written one by
//     one, the next when the last was read, so that a reader that reads what is
//     there and quits after three lines has not got the fourth.
//   - A Unix stream socket on Linux, as node gives its children: the same,
//     except that it only tells when everything was read: of what was under way
//     when the reader went, nothing is taken.
//   - A reader that is there and does not read is waited for until Patience is
//     over. Then the rest is written without waiting, and with the last byte
//     written and the reader still there, all is taken: many programs read their
//     child's output only when it has ended. If the reader goes before that, what
//     it did not read is not taken, however long it took.
//
// What may not: a reader may read and then do nothing with it.
package outlet

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// Piece is a part of the output. Pieces are taken in order, each in full or not
// at all.
type Piece struct {
	Text    []byte
	Message bool // a message, for the caller's count; not a head or foot line
}

// Outlet is an open output. The zero value is standard output.
type Outlet struct {
	File     *os.File
	Patience time.Duration // from the start of Show; 0 is 2 s
	Whole    bool          // the pieces are of use only together, as a JSON document is
}

// Show writes the pieces and returns how many of them, from the first on, were
// taken. err is the first error of writing, a *fs.PathError (EPIPE when the
// reader went before it took everything), or ctx's; it is nil when everything
// was taken. Show leaves the file's blocking mode as it is, and copes with
// either. It may take as long as the reader does: what must not wait for it is
// done beside it, after Patience. The program must have called IgnoreSIGPIPE.
func (o *Outlet) Show(ctx context.Context, pieces []Piece) (taken int, err error) {
	f := o.File
	if f == nil {
		f = os.Stdout
	}
	patience := o.Patience
	if patience == 0 {
		patience = 2 * time.Second
	}
	bytes, err := deliver(ctx, f, time.Now().Add(patience), pieces)
	if err != nil && err != ctx.Err() {
		if _, ok := err.(*fs.PathError); !ok {
			err = &fs.PathError{Op: "write", Path: f.Name(), Err: err}
		}
	}
	for _, p := range pieces {
		if bytes -= len(p.Text); bytes < 0 {
			break
		}
		taken++
	}
	if o.Whole && taken < len(pieces) {
		taken = 0
	}
	return taken, err
}

// Prompt reports whether writing to a file waits for nobody: a regular file, and
// the null device.
func Prompt(f fs.FileInfo) bool {
	if f.Mode().IsRegular() {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && f.Mode()&fs.ModeCharDevice != 0 && os.SameFile(f, null)
}
