// Package wire defines messages, events and addresses, and reads and writes them. It knows four other vocabularies;
// vocabularies.txt says what their values are, and ours. It does no I/O and needs no clock but for new ids.
//
// What you may rely on:
//
//   - Decoding never panics and never drops anything. Fields that it does not know, at
//     any depth, are kept and written back as they came, numbers to the last digit.
//   - Names must have exactly this case, unlike in encoding/json.
//   - An error of decoding carries line and column.
//   - Encoding is compact JSON in one line of UTF-8, with nothing escaped that JSON does not ask for.
//
// Message is the project's contract, version 1; docs/format.md has the table. Values are plain: copy
// them, and share them between goroutines while nobody writes.
package wire
