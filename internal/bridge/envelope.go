package bridge

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/wire"
)

// The kinds of envelope.
const (
	KindMail  = "mail"  // the content is a message, with whole addresses
	KindStage = "stage" // the content is a receipt
)

const (
	version     = 1
	maxHeader   = 4 << 10
	maxInline   = 512 << 10                 // bytes of content in the envelope; more goes through the object store
	maxContent  = wire.MaxFile + 256<<10    // whole addresses are longer
	maxEnvelope = maxHeader + 1 + maxInline // what is larger is not looked at
)

// Envelope is what travels from one host to another: a header, which is one line of JSON, and behind it the
// content, or its hash alone where the content lies in the object store. The signature covers all of it.
type Envelope struct {
	Version   int       `json:"version"`
	Kind      string    `json:"kind"`
	ID        wire.ID   `json:"id"`
	Team      wire.Name `json:"team"`
	FromHost  wire.Name `json:"from_host"`
	ToHost    wire.Name `json:"to_host,omitempty"` // "": every host
	At        time.Time `json:"at"`                // by the sender's clock
	SHA256    string    `json:"sha256"`            // of the content
	Size      int64     `json:"size"`              // of the content, in bytes
	Object    bool      `json:"object,omitempty"`  // the content lies in the object store
	Signature []byte    `json:"signature,omitempty"`

	Content []byte `json:"-"` // nil with Object, until it is fetched
}

// header is the header as one line, without a line feed.
func (e *Envelope) header() []byte {
	line, err := json.Marshal(e)
	if err != nil { // a year that no time has
		return nil
	}
	return line
}

// signed is what the signature covers: the header without it, and so the content's hash.
func (e *Envelope) signed() []byte {
	unsigned := *e
	unsigned.Signature = nil
	return append([]byte("atm envelope\n"), unsigned.header()...)
}

// Sign completes an envelope with its content's hash and its signature, and returns it as it travels.
func (e *Envelope) Sign(key ed25519.PrivateKey) []byte {
	sum := sha256.Sum256(e.Content)
	e.Version, e.SHA256, e.Size, e.At = version, hex.EncodeToString(sum[:]), int64(len(e.Content)), e.At.UTC()
	e.Signature = ed25519.Sign(key, e.signed())
	line := append(e.header(), '\n')
	if e.Object {
		return line
	}
	return append(line, e.Content...)
}

// Open reads an envelope, and accepts it if it is whole and signed by the host that it names, whose key
// trusted returns. Where it goes is not looked at.
func Open(data []byte, trusted func(host wire.Name) (ed25519.PublicKey, error)) (*Envelope, error) {
	line, content, ok := bytes.Cut(data, []byte("\n"))
	e := &Envelope{}
	switch {
	case len(data) > maxEnvelope || len(line) > maxHeader:
		return nil, fmt.Errorf("no envelope: it has %d bytes", len(data))
	case !ok:
		return nil, errors.New("no envelope: it has no header")
	}
	if err := json.Unmarshal(line, e); err != nil {
		return nil, fmt.Errorf("no envelope: %w", err)
	}
	switch {
	case e.Version != version:
		return nil, fmt.Errorf("an envelope of version %d, and this atm knows %d", e.Version, version)
	case !wire.IsName(string(e.FromHost)) || !wire.IsName(string(e.Team)) || !wire.IsID(string(e.ID)) || e.header() == nil:
		return nil, errors.New("no envelope: its host, team, id or time is none")
	case e.Size < 0 || e.Size > maxContent:
		return nil, fmt.Errorf("its content has %d bytes, the most is %d", e.Size, maxContent)
	}
	key, err := trusted(e.FromHost)
	if err != nil {
		return nil, err
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, e.signed(), e.Signature) {
		return nil, fmt.Errorf("not signed by the trusted key of host %s", e.FromHost)
	}
	if !e.Object {
		e.Content = content
		err = e.checkContent()
	}
	return e, err
}

// checkContent is nil if the content is the one that was signed.
func (e *Envelope) checkContent() error {
	sum := sha256.Sum256(e.Content)
	if int64(len(e.Content)) != e.Size || hex.EncodeToString(sum[:]) != e.SHA256 {
		return errors.New("its content is not the one that was signed")
	}
	return nil
}
