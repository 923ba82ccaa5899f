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
	"github.com/agentteammail/atm/wire"
)

// message is a prompt as a message: its text with links in it, then what was embedded; images and other bytes
// are attached.
func (a *agent) message(prompt []acp.ContentBlock) (*wire.Message, error) {
	m := &wire.Message{ReplyWanted: "yes", Origin: a.Origin()}
	m.Origin.Via = "acp"
	var text, embedded strings.Builder
	for _, b := range prompt {
		var err error
		switch {
		case b.Text != nil:
			text.WriteString(b.Text.Text)
		case b.ResourceLink != nil:
			text.WriteString(link(b.ResourceLink.Name, b.ResourceLink.Uri))
		case b.Image != nil:
			err = a.attach(m, deref(b.Image.Uri), b.Image.MimeType, b.Image.Data)
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			blob := b.Resource.Resource.BlobResourceContents
			err = a.attach(m, blob.Uri, deref(blob.MimeType), blob.Blob)
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			text.WriteString(link(path.Base(r.Uri), r.Uri))
			fmt.Fprintf(&embedded, "\n\n%s\n%s", r.Uri, fenced(r.Text))
		default:
			err = command.Usage("a prompt holds text, links, images and embedded files only")
		}
		if err != nil {
			return nil, err
		}
	}
	m.Body = text.String() + embedded.String()
	return m, nil
}

func link(name, uri string) string { return "[" + name + "](" + uri + ")" }

// fenced is a text as a block of Markdown, whatever is in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// attach stores bytes in the member's team.
func (a *agent) attach(m *wire.Message, uri, mediaType, data string) error {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return command.Usage("the bytes of an attachment: %w", err)
	}
	_, kind, _ := strings.Cut(mediaType, "/")
	name := fmt.Sprintf("%d.%s", len(m.Attachments)+1, cmp.Or(kind, "bin"))
	if uri != "" {
		name = path.Base(uri)
	}
	attached, err := a.member.Store().Attach(name, bytes.NewReader(content))
	attached.MediaType = cmp.Or(mediaType, attached.MediaType)
	m.Attachments = append(m.Attachments, attached)
	return err
}

// blocks are a message as the client shows it: the text, and links to what is attached.
func (a *agent) blocks(m *wire.Message) []acp.ContentBlock {
	out := []acp.ContentBlock{acp.TextBlock(strings.TrimPrefix(m.Subject+"\n\n"+m.Body, "\n\n"))}
	for _, f := range m.Attachments {
		file := url.URL{Scheme: "file", Path: a.Team.AttachmentPath(f)}
		out = append(out, acp.ResourceLinkBlock(f.Name, file.String()))
	}
	return out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
