package mail

import (
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/urfave/cli/v2"
)

type badFile struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Size   int64  `json:"size"`
	State  string `json:"state"`
}

type badListing struct {
	command.Listing
	Bad []badFile `json:"bad"`

	path string
}

func (l badListing) String() string {
	if len(l.Bad)+l.More == 0 {
		return "0 bad"
	}
	var b strings.Builder
	for _, f := range l.Bad {
		fmt.Fprintf(&b, "%s %s: %s\n", letter.Escape(f.Name), letter.Size(f.Size), letter.Clip(letter.Escape(f.Reason), 160))
	}
	if l.More > 0 {
		fmt.Fprintf(&b, "%d more: atm ls --bad --limit 0\n", l.More)
	}
	fmt.Fprintf(&b, "they are in %s/inbox/bad\n", letter.Escape(l.path))
	return b.String()
}

func lsBad(c *cli.Context, box *mailbox.Box) error {
	if _, err := box.TakeIn(c.Context); err != nil {
		return err
	}
	files, err := box.BadFiles(0)
	if err != nil {
		return err
	}
	if c.Bool("count") {
		return command.Print(c, count{len(files)})
	}
	l := badListing{Listing: command.NewListing(nil, 0), path: box.Path()}
	if n := c.Int("limit"); n > 0 && len(files) > n {
		l.More = len(files) - n
		files = files[:n]
	}
	for _, f := range files {
		l.Bad = append(l.Bad, badFile{f.Name, f.Reason, f.Size, string(mailbox.Bad)})
	}
	return command.Print(c, l)
}
