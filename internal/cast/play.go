package cast

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// wipe makes a terminal forget what an earlier run left on it.
const wipe = "\x1b[?1049l\x1b[!p\x1b[H\x1b[2J"

// betweenRuns is as long as a time in which nothing was recorded lasts.
const betweenRuns = time.Second

// Play shows a recording in its own time, speed times as fast (0: once). No
// pause is longer than idleLimit of the recording's time (0: as long as it was).
// The end of ctx ends it with ctx's error.
func Play(ctx context.Context, w io.Writer, r *Reader, speed float64, idleLimit time.Duration) error {
	if !(speed > 0) {
		speed = 1
	}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var before, due time.Duration
	began := time.Now()
	first := true
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		pause := e.At - before
		before = e.At
		if idleLimit > 0 {
			pause = min(pause, idleLimit)
		}
		if e.Code == Begin {
			pause = min(pause, betweenRuns)
		}
		due += time.Duration(math.Min(float64(pause)/speed, 1<<62))
		// The clock decides, not the sum of pauses: what a slow terminal loses
		// is caught up.
		if wait := due - time.Since(began); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		} else if err := ctx.Err(); err != nil {
			return err
		}
		text := ""
		switch {
		case e.Code == Output:
			text = e.Data
		case e.Code == Begin && !first && pause > 0:
			text = wipe
		}
		first = false
		if text == "" {
			continue
		}
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("play the recording: %w", err)
		}
	}
}

// Raw writes what was shown, at once and without anything else.
func Raw(w io.Writer, r *Reader) error {
	return each(w, r, func(b *bufio.Writer, e Event) {
		if e.Code == Output {
			b.WriteString(e.Data)
		}
	})
}

// Export writes the recording as one asciicast of version 2, for players that
// know no other. An exit code becomes a marker there.
func Export(w io.Writer, r *Reader) error {
	first := true
	return each(w, r, func(b *bufio.Writer, e Event) {
		switch {
		case e.Code == Begin && first:
			first = false
			h := r.Header()
			line, _ := json.Marshal(struct { // of strings and numbers: never an error
				Version   int               `json:"version"`
				Width     int               `json:"width"`
				Height    int               `json:"height"`
				Timestamp int64             `json:"timestamp,omitempty"`
				Command   string            `json:"command,omitempty"`
				Title     string            `json:"title,omitempty"`
				Env       map[string]string `json:"env,omitempty"`
			}{2, h.Cols, h.Rows, seconds(h.Began), h.Command, h.Title, terminal(h.Type)})
			b.Write(append(line, '\n'))
			return
		case e.Code == Begin:
			e.Code = Resize
		case e.Code == Exit:
			e.Code, e.Data = Marker, "exit "+e.Data
		}
		line := append(b.AvailableBuffer(), '[')
		line = strconv.AppendFloat(line, e.At.Seconds(), 'f', 6, 64)
		line = append(line, `, "`...)
		line = appendEscaped(line, []byte{e.Code})
		line = append(line, `", "`...)
		line = appendEscaped(line, []byte(e.Data))
		b.Write(append(line, `"]`+"\n"...))
	})
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func terminal(kind string) map[string]string {
	if kind == "" {
		return nil
	}
	return map[string]string{"TERM": kind}
}

// each calls write for each event of a recording.
func each(w io.Writer, r *Reader, write func(*bufio.Writer, Event)) error {
	b := bufio.NewWriterSize(w, 64<<10)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			write(b, e)
			continue
		}
		if e := b.Flush(); err == nil {
			err = e
		}
		return err
	}
}
