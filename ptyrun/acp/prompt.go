//go:build linux || darwin

package acp

import (
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// maxEmbedded is how large an attachment may be to go out within a prompt: a line of the protocol has 10 MiB
// at most.
const maxEmbedded = 2 << 20

// blocks are a prompt, and behind its text the attachments of the messages that the runner types in it.
func (f *front) blocks(text string) []acp.ContentBlock {
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	room := int64(maxEmbedded)
	for _, it := range f.Box.BeingTyped() {
		if !strings.Contains(text, it.ID.Short(6)) {
			continue
		}
		for _, a := range it.Attachments {
			b := f.block(f.Box.Store(), a, room)
			if blocks = append(blocks, b); b.ResourceLink == nil {
				room -= a.Size
			}
		}
	}
	return blocks
}

// block is an attachment as the agent can take it: whole, where it is text or an image and there is room,
// else a link.
func (f *front) block(s *mailbox.Store, a wire.Attachment, room int64) acp.ContentBlock {
	uri := "file://" + s.Dir().Join(mailbox.FilesDir+"/"+a.SHA256)
	link := acp.ResourceLinkBlock(a.Name, uri)
	file, err := s.Attachment(a)
	if err != nil || a.Size > room {
		return link
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, a.Size))
	if err != nil {
		return link
	}
	kind := http.DetectContentType(data)
	switch can := f.can; {
	case strings.HasPrefix(kind, "image/") && can.Image:
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(data), kind)
	case strings.HasPrefix(a.MediaType, "text/") && can.EmbeddedContext:
		text := &acp.TextResourceContents{Uri: uri, Text: strings.ToValidUTF8(string(data), "\uFFFD")}
		if kind := mime.TypeByExtension(filepath.Ext(a.Name)); kind != "" {
			text.MimeType = &kind
		}
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: text})
	}
	return link
}
