package acpagent

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/wire"
)

// newMessage converts a prompt: links become part of the text, embedded texts follow it, images and other data are
// attached.
func (a *agent) newMessage(prompt []acp.ContentBlock) (_ *wire.Message, err error) {
	m, embedded := &wire.Message{ReplyWanted: "yes", Origin: a.Origin()}, ""
	m.Origin.Via = "acp"
	for _, b := range prompt {
		switch {
		case b.Text != nil:
			m.Body += b.Text.Text
		case b.ResourceLink != nil:
			m.Body += fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri)
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			m.Body += fmt.Sprintf("[%s](%s)", path.Base(r.Uri), r.Uri)
			attributes := fmt.Sprintf("ref=%q", r.Uri)
			if r.MimeType != nil {
				attributes += fmt.Sprintf(" type=%q", *r.MimeType)
			}
			embedded += fmt.Sprintf("\n<context %s>\n%s\n</context>", attributes, strings.TrimSuffix(r.Text, "\n"))
		case b.Image != nil:
			name := fmt.Sprintf("image-%d.%s", len(m.Attachments)+1, path.Base(b.Image.MimeType))
			err = a.attach(m, name, b.Image.MimeType, b.Image.Data)
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			r := b.Resource.Resource.BlobResourceContents
			err = a.attach(m, path.Base(r.Uri), *cmp.Or(r.MimeType, acp.Ptr("")), r.Blob)
		default:
			err = failure.Usage("a prompt may hold text, links, embedded resources and images").
				WithHint("`atm send %s --attach FILE`", a.name())
		}
		if err != nil {
			return nil, err
		}
	}
	m.Body += embedded
	if strings.TrimSpace(m.Body) == "" && m.Attachments == nil {
		return nil, failure.Usage("the prompt is empty")
	}
	return m, nil
}

func (a *agent) attach(m *wire.Message, name, mediaType, content string) error {
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return failure.Usage("%s is not base64: %w", name, err)
	}
	file, err := filestore.Add(a.member.Store().Dir(), name, bytes.NewReader(data))
	file.MediaType = cmp.Or(mediaType, file.MediaType)
	m.Attachments = append(m.Attachments, file)
	return err
}

// blocks converts a message to content for the client: the text alone if it is the user's or the member's.
func (a *agent) blocks(m *wire.Message) []acp.ContentBlock {
	text := letter.EscapeMail(strings.TrimPrefix(m.Subject+"\n\n"+m.Body, "\n\n"))
	if m.From != a.Me.Address() && m.From != a.member.Address() {
		r := &letter.Renderer{Now: time.Now(), Team: a.Team.Name, Digits: 6}
		text = "[atm " + strings.Replace(string(r.Render(m, letter.Flags{})), "\n", "]\n", 1) + letter.End
	}
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	for _, f := range m.Attachments {
		file := url.URL{Scheme: "file", Path: a.Team.Dir().Join(filestore.Dir + "/" + f.SHA256)}
		blocks = append(blocks, acp.ResourceLinkBlock(letter.OneLine(f.Name, 200), file.String()))
	}
	return blocks
}

// words are the member's own.
func words(text string) acp.SessionUpdate { return acp.UpdateAgentMessageText(letter.EscapeMail(text)) }
