package headers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/wire"
)

// What a look costs in a folder of 100,000 messages.
func BenchmarkCache(b *testing.B) {
	root, err := durable.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	const n = 100_000
	dir, _ := root.Lstat(".")
	c := headers.New(headers.StampOf(dir), n, true)
	var ids []wire.ID
	for i := range n {
		ids = append(ids, wire.ID(fmt.Sprintf("%08x-%04x-7000-8000-%012x", i, i&0xffff, i)))
		h := headers.Of(&wire.Message{ID: ids[i], InReplyTo: ids[i/2], Body: strings.Repeat("some text ", 15), SentAt: time.Now()})
		c.Add(headers.KeyOf(ids[i]), &h)
	}
	if err := c.Write(root, "cache"); err != nil {
		b.Fatal(err)
	}
	info, _ := root.Lstat("cache")
	b.ReportMetric(float64(info.Size())/1e6, "MB")
	b.Run("newest", func(b *testing.B) {
		for b.Loop() {
			c := headers.Read(root, "cache", headers.IDs, 0)
			for i := range 20 {
				c.Key(c.Len() - 1 - i).ID()
			}
		}
	})
	asked := headers.KeyOf(ids[4711])
	b.Run("answers", func(b *testing.B) {
		for b.Loop() {
			c, found := headers.Read(root, "cache", headers.Rows, 0), 0
			for i := range c.Len() {
				if h, _ := c.Header(i); h.InReplyTo == asked {
					found++
				}
			}
		}
	})
	b.Run("nobody", func(b *testing.B) {
		for b.Loop() {
			headers.Read(root, "cache", headers.Rows, headers.HasDue)
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			c := headers.Read(root, "cache", headers.Texts, 0)
			for i := range c.Len() {
				h, _ := c.Header(i)
				strings.Contains(h.Text, "flaky")
			}
		}
	})
	b.Run("replace", func(b *testing.B) {
		for b.Loop() {
			c.Write(root, "cache")
		}
	})
}
