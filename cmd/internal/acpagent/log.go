package acpagent

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"github.com/agentteammail/atm/wire"
)

// newLogger returns a logger for what the SDK does not understand of the client. It never waits for whoever reads
// stderr, which may be nobody: it writes a short line a second, a hundred in all, and drops the others.
func newLogger(stderr io.Writer) *slog.Logger {
	lines := make(chan []byte, 10)
	go func() {
		for range 100 {
			stderr.Write(<-lines)
			time.Sleep(time.Second)
		}
	}()
	clip := func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(wire.Clip(a.Value.String(), 100))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(logWriter(lines), &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: clip}))
}

type logWriter chan<- []byte

func (w logWriter) Write(line []byte) (int, error) {
	select {
	case w <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}
