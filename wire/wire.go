// Package wire says what a message, an event and an address are, and reads
// and writes them. It does no I/O and knows no clock but the one that makes
// new ids.
//
// What may be relied on:
//
//   - Decoding never panics and never drops anything: fields it does not know,
//     at any depth, are kept as they came and written back (numbers too, to the
//     last digit).
//   - Keys are matched exactly, in this case, unlike encoding/json.
//   - An error of the decoder carries line and column of what was wrong.
//   - Encoding is compact JSON in one line, UTF-8, with nothing escaped that
//     JSON does not ask for.
//
// Members that a struct does not know are kept by an embedded jsontext.Value. The
// library calls that embed, the one in Go 1.26 (GOEXPERIMENT=jsonv2) inline.
//
// The envelope (Message) is the project's contract, version 1; docs/format.md
// has the table. Values are plain: copy them, share them between goroutines as
// long as nobody writes.
package wire
