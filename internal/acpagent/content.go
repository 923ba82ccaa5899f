package acpagent

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// message is a prompt as a message: its text with links in it, then the texts that were embedded. Images are
// attached.
func (a *agent) message(prompt []acp.ContentBlock) (*wire.Message, error) {
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
			embedded += fmt.Sprintf("\n<context ref=%q>\n%s\n</context>", r.Uri, strings.TrimSuffix(r.Text, "\n"))
		case b.Image != nil:
			data, err := base64.StdEncoding.DecodeString(b.Image.Data)
			if err != nil {
				return nil, command.Usage("an image is not base64: %w", err)
			}
			name := fmt.Sprintf("image-%d.%s", len(m.Attachments)+1, path.Base(b.Image.MimeType))
			file, err := a.member.Store().Attach(name, bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			file.MediaType = cmp.Or(b.Image.MimeType, file.MediaType)
			m.Attachments = append(m.Attachments, file)
		default:
			return nil, command.Usage("a prompt holds text, links, embedded text and images").WithHint("atm send %s --attach FILE", a.name())
		}
	}
	if m.Body += embedded; strings.TrimSpace(m.Body) == "" && m.Attachments == nil {
		return nil, command.Usage("the prompt is empty")
	}
	return m, nil
}

// blocks are a message as the client shows it: its text, and links to what is attached.
func (a *agent) blocks(m *wire.Message) []acp.ContentBlock {
	text := strings.TrimPrefix(m.Subject+"\n\n"+m.Body, "\n\n")
	if m.From != a.Me.Address() && m.From != a.member.Address() {
		text = m.From.String() + ": " + text
	}
	out := []acp.ContentBlock{acp.TextBlock(text)}
	for _, f := range m.Attachments {
		file := url.URL{Scheme: "file", Path: a.Team.Dir().Join(mailbox.FilesDir + "/" + f.SHA256)}
		out = append(out, acp.ResourceLinkBlock(f.Name, file.String()))
	}
	return out
}
