package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Content is what Check finds in a backup.
type Content struct {
	SHA256   string
	Messages int
}

// Check reads a backup to its end. It returns an error if the file is none or is cut off. Without it a backup that was
// cut off between two files would pass for a whole one: a tar ends in zeros.
func Check(from io.ReadSeeker) (c Content, err error) {
	sum := sha256.New()
	files := tar.NewReader(io.TeeReader(from, sum))
	if err = checkFormat(files); err != nil {
		return c, err
	}
	for {
		h, err := files.Next()
		if err != nil { // Restore restores what comes before the damage, and reports it
			break
		}
		if _, below, _ := strings.Cut(h.Name, "/"); isMessage(below) {
			c.Messages++
		}
	}
	_, err = io.Copy(sum, from)
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err == nil {
		_, err = from.Seek(-1024, io.SeekEnd)
	}
	end, bad := io.ReadAll(from)
	if err = cmp.Or(err, bad); err == nil && len(bytes.Trim(end, "\x00")) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = fmt.Errorf("the backup is damaged or cut off: %w", err)
	}
	return c, err
}

// isMessage reports whether a path in a team is a message's.
func isMessage(name string) bool {
	agent, below, _ := strings.Cut(name, "/")
	return wire.IsName(agent) && messages().MatchString(below)
}

// checkFormat reads the first file of a backup.
func checkFormat(files *tar.Reader) error {
	h, err := files.Next()
	if err != nil || h.Name != rootdir.FormatFile {
		return fmt.Errorf("not an atm backup: it does not begin with %s", rootdir.FormatFile)
	}
	format, err := io.ReadAll(io.LimitReader(files, 64))
	if err == nil {
		if err = rootdir.CheckFormat(format); err != nil {
			err = fmt.Errorf("the backup has %w", err)
		}
	}
	return err
}
