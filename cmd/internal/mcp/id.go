package mcp

import (
	"bytes"
	"io"
	"regexp"

	"github.com/agentteammail/atm/wire"
)

// numberIDs carries the ids of requests that are numbers through the SDK, which makes a float64 and then an int64 of
// them: 12345678901234567890 and 1.5 would come back as others. Such an id travels as a string with a secret mark.
type numberIDs struct{ mark string }

// changing is a number that the SDK changes: a long one, or one that is not written as an integer.
var changing = regexp.MustCompile(`^(-?[0-9]{16,}|-0|-?[0-9]+[.eE][-+0-9eE]+)$`)

var mayChange = regexp.MustCompile(`"(id|requestId)"\s*:\s*(-?[0-9]{16}|-0|-?[0-9]+[.eE])`)

// hide replaces the id of a request, or of one that is cancelled, if the SDK would change it. Any other line stays as it
// is.
func (n numberIDs) hide(line []byte) []byte {
	if !mayChange.Match(line) { // nearly always
		return line
	}
	message, err := wire.ReadObject(line)
	if err != nil || !message.Has("method") {
		return line
	}
	if id := message.Get("id"); changing.Match(id) {
		message = message.With("id", wire.Quote(n.mark+string(id)))
	}
	params := message.Object("params")
	if id := params.Get("requestId"); changing.Match(id) {
		message = message.With("params", params.With("requestId", wire.Quote(n.mark+string(id))).Encode())
	}
	return message.Encode()
}

// A restorer puts the hidden ids of responses back. Each Write gets one whole message.
type restorer struct {
	io.WriteCloser
	numberIDs
}

func (r restorer) Write(message []byte) (int, error) {
	restored := message
	if bytes.Contains(message, []byte(r.mark)) {
		restored = regexp.MustCompile(`"id":"`+r.mark+`([^"]*)"`).ReplaceAll(message, []byte(`"id":$1`))
	}
	if _, err := r.WriteCloser.Write(restored); err != nil {
		return 0, err
	}
	return len(message), nil
}
