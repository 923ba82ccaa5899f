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

	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// The kinds of envelope. Mail and stages are published for one host, rows are in the key-value bucket for all hosts.
const (
	KindMail  = "mail"  // the content is a message, whose addresses have their hosts
	KindStage = "stage" // the content is a stages
	KindRows  = "rows"  // the content is a teamdir.Rows
)

const (
	version     = 1
	maxHeader   = 4 << 10
	maxInline   = 512 << 10              // bytes of content in the envelope; more goes through the object store
	maxContent  = wire.MaxFile + 256<<10 // addresses with hosts are longer
	maxEnvelope = maxHeader + maxInline
	overhead    = 512 // bytes that the server counts beside an envelope, at most
)

// Envelope is what one host sends to another: a header, which is one line of JSON, and then the content, unless that is
// in the object store. The signature covers the header, and by its hash the content.
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
	Object    bool      `json:"object,omitempty"`  // the content is in the object store
	Signature []byte    `json:"signature,omitempty"`

	Content []byte `json:"-"` // nil once received, if Object is set
}

func (e *Envelope) signed() []byte {
	unsigned := *e
	unsigned.Signature = nil
	header, _ := json.Marshal(unsigned) // fails for a year above 9999, whose signature then is invalid
	return append([]byte("atm envelope\n"), header...)
}

// Sign sets the content's hash and the signature, and returns the encoded envelope.
func (e *Envelope) Sign(key ed25519.PrivateKey) []byte {
	e.Version, e.SHA256, e.Size, e.At = version, hashOf(e.Content), int64(len(e.Content)), e.At.UTC()
	e.Signature = ed25519.Sign(key, e.signed())
	header, _ := json.Marshal(e)
	if e.Object {
		return append(header, '\n')
	}
	return append(append(header, '\n'), e.Content...)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Open decodes an envelope, and checks that it is whole and that the host in it has signed it. It does not check the
// recipient.
func Open(data []byte, trusted func(host wire.Name) (ed25519.PublicKey, error)) (*Envelope, error) {
	header, content, _ := bytes.Cut(data, []byte("\n"))
	e := &Envelope{}
	if len(data) > maxEnvelope || json.Unmarshal(header, e) != nil {
		return nil, fmt.Errorf("%d bytes that are not an envelope", len(data))
	}
	if e.Version != version {
		return nil, fmt.Errorf("an envelope of version %d; this atm knows version %d", e.Version, version)
	}
	if !wire.IsName(string(e.FromHost)) || e.Size > maxContent {
		return nil, fmt.Errorf("not an envelope: its host is %.80q, its size %d", e.FromHost, e.Size)
	}
	key, err := trusted(e.FromHost)
	if err != nil {
		return nil, fmt.Errorf(presence.UnknownHost+"%s: %w", e.FromHost, err)
	}
	if !ed25519.Verify(key, e.signed(), e.Signature) {
		return nil, fmt.Errorf("not signed by the trusted key of host %s", e.FromHost)
	}
	if !e.Object {
		e.Content = content
		err = e.checkContent()
	}
	return e, err
}

// signerOf returns the host that an envelope says has signed it; ifNone: it says none.
func signerOf(data []byte, ifNone wire.Name) wire.Name {
	var e Envelope
	header, _, _ := bytes.Cut(data, []byte("\n"))
	if json.Unmarshal(header, &e) != nil || e.FromHost == "" {
		return ifNone
	}
	return e.FromHost
}

// checkContent returns an error unless the content is the one that was signed.
func (e *Envelope) checkContent() error {
	if int64(len(e.Content)) != e.Size || hashOf(e.Content) != e.SHA256 {
		return errors.New("its content differs from what was signed")
	}
	return nil
}
