// Package wire defines messages, events and addresses, and reads and writes their JSON and that of four other systems,
// whose vocabularies are in vocabularies.txt. It does no I/O, and only NewID reads the clock.
//
// You may rely on this:
//
//   - Decoding never panics, and keeps unknown fields at any depth: they are written back as they came, numbers to
//     the last digit.
//   - Member names are case-sensitive, unlike in encoding/json.
//   - A decoding error has a line and a column.
//   - Encoding gives one line of compact UTF-8 JSON and escapes only what JSON requires.
//
// Message is the project's contract, version 1; docs/format.md has the table. All types are plain values: copy them,
// and share them between goroutines while nobody writes.
package wire
