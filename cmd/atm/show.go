package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var showVerb = &cmdline.Verb{
	Name: "show", Aliases: []string{"cat"}, Args: "ID", Summary: "show one message whole",
	Examples: []string{"atm show 9f3a1c", "atm show 9f3a1c --save ."},
	Notes:    []string{"Marks nothing."},
	Flags: []cmdline.Flag{
		{Name: "raw", Usage: "the bytes of the body alone"},
		{Name: "save", Kind: cmdline.String, Arg: "DIR", Usage: "its attachments, under their names"},
	},
	MinArgs: 1, MaxArgs: 1,
	Run: run(show),
}

func show(ctx context.Context, e *env) error {
	if err := e.NotBoth("raw", "save"); err != nil {
		return err
	}
	if err := e.whoIfSaid(); err != nil {
		return err
	}
	it, box, err := e.find(ctx, e.Args[0], false)
	if err != nil {
		return err
	}
	switch {
	case e.Given("save"):
		return e.save(it, box)
	case e.Bool("raw"):
		_, err := e.Stdout.WriteString(it.Body)
		return err
	case e.JSON():
		return e.PrintJSON(struct {
			Message jsonItem `json:"message"`
		}{jsonItem{Item: it}})
	}
	l := e.renderer()
	if _, err := e.Stdout.Write(l.Render(it.Message, flagsOf([]*mailbox.Item{it}, nil, l.Now)[0])); err != nil {
		return err
	}
	for _, a := range it.Attachments {
		if err := e.print("attached: %s, %s", letter.Escape(a.Name), letter.Size(a.Size)); err != nil {
			return err
		}
	}
	if it.State == mailbox.Unread && it.Lease == nil && e.me != nil && box.Address() == e.me.Address() {
		return e.print("still unread: atm read %s%s", it.ID.Short(6), e.typed())
	}
	return nil
}

// whoIfSaid is who for verbs that need no identity but use one that is given.
func (e *env) whoIfSaid() error {
	if e.Given("as") || e.Getenv("ATM_AGENT") != "" {
		return e.who()
	}
	return e.open()
}

type savedFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// save writes a message's attachments into a directory, never over a file that
// is there and never outside of it, whatever their names say.
func (e *env) save(it *mailbox.Item, box *mailbox.Box) error {
	dir, err := os.OpenRoot(e.String("save"))
	if err != nil {
		return cmdline.Usage("--save: %v", err).WithHint("mkdir -p %s", e.String("save"))
	}
	defer dir.Close()
	saved := []savedFile{}
	for _, a := range it.Attachments {
		f, err := box.Store().Attachment(a)
		if err != nil {
			return err
		}
		name, err := saveAs(dir, safeName(a), f)
		f.Close()
		if err != nil {
			return fmt.Errorf("save %s: %w", letter.Escape(a.Name), err)
		}
		saved = append(saved, savedFile{name, filepath.Join(e.String("save"), name), a.Size})
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"saved": saved})
	}
	if len(saved) == 0 {
		return e.print("message %s has no attachments", it.ID.Short(6))
	}
	for _, s := range saved {
		if err := e.print("%s (%s)", s.Path, letter.Size(s.Size)); err != nil {
			return err
		}
	}
	return nil
}

// safeName is an attachment's name as one component of a path.
func safeName(a wire.Attachment) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, letter.Escape(a.Name))
	name = strings.TrimLeft(name, ".")
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "")
	}
	if name == "" || !filepath.IsLocal(name) {
		name = "attachment-" + a.SHA256[:8]
	}
	return name
}

// saveAs writes a new file; a name that is taken gets a number.
func saveAs(dir *os.Root, name string, from io.Reader) (string, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; ; n++ {
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			name = fmt.Sprintf("%s-%d%s", stem, n+1, ext)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(f, from)
		return name, errors.Join(err, f.Close())
	}
}
