package mailbox

import (
	"bytes"

	"github.com/agentteammail/atm/wire"
)

// A page is what one showing of mail to a model holds at most: agents' tools
// cut longer output out of the middle.
const (
	PageMessages = 20
	PageBytes    = 8 << 10
	PageLines    = 200
)

// Page makes the letters cut a message that fills more than a page alone, and
// returns the ReadOptions.Fits that ends a batch where the page is full. It
// adds up: for one batch.
func (l *Letters) Page() func(*wire.Message) bool {
	l.Bytes, l.Lines = PageBytes, PageLines
	size, lines := 0, 0
	return func(m *wire.Message) bool {
		text := l.Render(m, Marks{})
		first := size == 0
		size, lines = size+len(text)+40, lines+bytes.Count(text, []byte{'\n'})
		return first || size <= PageBytes && lines <= PageLines
	}
}
