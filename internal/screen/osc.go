package screen

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// NoteKind is what a Note is about.
type NoteKind uint8

// The kinds of notes.
const (
	Bell   NoteKind = iota + 1
	Notify          // OSC 9, 777, 99; Text is "title: body" or what there is of it
	Mark            // OSC 133; Text is what follows "133;"
	Title           // Text is the new title
)

// Note is something that a program said beside its text.
type Note struct {
	Kind NoteKind
	Text string
}

const (
	maxNotes    = 64
	maxNoteText = 1024 // bytes
)

// Notes are the notes since the last call, oldest first; nil: none. At most 64
// are kept, the newest. Bells in a row are one note, and of titles only the
// newest is kept, so that a spinner in the title pushes nothing out.
func (s *Screen) Notes() []Note {
	n := s.notes
	s.notes = nil
	return n
}

func (s *Screen) note(n Note) {
	switch last := len(s.notes) - 1; {
	case n.Kind == Bell && last >= 0 && s.notes[last].Kind == Bell:
		return
	case n.Kind == Title:
		for i, old := range s.notes {
			if old.Kind == Title {
				s.notes = append(s.notes[:i], s.notes[i+1:]...)
				break
			}
		}
	}
	if len(s.notes) == maxNotes {
		s.notes = append(s.notes[:0], s.notes[1:]...)
	}
	n.Text = cutText(n.Text, maxNoteText)
	s.notes = append(s.notes, n)
}

// cutText is valid text of at most limit bytes.
func cutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// printable is text from outside without controls, C1 ones too.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

func (s *Screen) setTitle(title string) {
	if title != s.title {
		s.title = title
		s.note(Note{Kind: Title, Text: title})
	}
}

// osc does an OSC string; end is what ended it.
func (s *Screen) osc(end string) {
	if s.long {
		return
	}
	if t := s.seq; len(t) >= 2 && t[1] == ';' && (t[0] == '0' || t[0] == '2') {
		if string(t[2:]) != s.title { // a spinner repeats itself: no garbage for that
			s.setTitle(printable(string(t[2:])))
		}
		return
	}
	number, text, _ := strings.Cut(string(s.seq), ";")
	switch number {
	case "4":
		s.queryPalette(text, end)
	case "10", "11", "12":
		s.queryColors(number, text, end)
	case "9":
		if !progress(text) {
			s.note(Note{Notify, printable(text)})
		}
	case "777":
		if rest, ok := strings.CutPrefix(text, "notify;"); ok {
			title, body, _ := strings.Cut(rest, ";")
			s.note(Note{Notify, titled(printable(title), printable(body))})
		}
	case "99":
		s.kittyNotify(text)
	case "133":
		s.note(Note{Mark, printable(text)})
	}
}

// progress says that an OSC 9 is one of ConEmu's commands, most often a
// progress bar, and no notification: a number up to 12 and its arguments.
func progress(text string) bool {
	number, _, _ := strings.Cut(text, ";")
	n, err := strconv.Atoi(number)
	return err == nil && n >= 1 && n <= 12
}

func titled(title, body string) string {
	switch {
	case title == "":
		return body
	case body == "":
		return title
	}
	return title + ": " + body
}

// chunks is a notification of OSC 99 that is not whole yet.
type chunks struct {
	id          string
	title, body string
}

// kittyNotify is OSC 99: metadata, then one piece of the title or of the body.
func (s *Screen) kittyNotify(text string) {
	meta, payload, _ := strings.Cut(text, ";")
	id, part, done := "", "title", true
	for field := range strings.SplitSeq(meta, ":") {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "i":
			id = value
		case "p":
			part = value
		case "d":
			done = value != "0"
		case "e":
			if value != "1" {
				continue
			}
			plain, err := base64.StdEncoding.DecodeString(payload)
			if err != nil {
				return
			}
			payload = string(plain)
		}
	}
	c := &s.chunks
	if c.id != id {
		*c = chunks{id: id}
	}
	switch part {
	case "title":
		c.title = cutText(c.title+printable(payload), maxNoteText)
	case "body":
		c.body = cutText(c.body+printable(payload), maxNoteText)
	default: // a query, an icon, buttons, the end of one
		return
	}
	if done {
		if t := titled(c.title, c.body); t != "" {
			s.note(Note{Notify, t})
		}
		*c = chunks{}
	}
}

// queryPalette is OSC 4: pairs of a number and "?". What would set a colour is
// passed over: cells say numbers.
func (s *Screen) queryPalette(text, end string) {
	for text != "" {
		var number, what string
		number, text, _ = strings.Cut(text, ";")
		what, text, _ = strings.Cut(text, ";")
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < 256 && what == "?" {
			s.answerColor("4;"+strconv.Itoa(n), paletteRGB(n), end)
		}
	}
}

// queryColors is OSC 10–12: foreground, background, cursor, each one more in
// the same string.
func (s *Screen) queryColors(number, text, end string) {
	n, _ := strconv.Atoi(number)
	for ask := range strings.SplitSeq(text, ";") {
		if ask == "?" && n <= 12 {
			rgb := foreground
			if n == 11 {
				rgb = background
			}
			s.answerColor(strconv.Itoa(n), rgb, end)
		}
		n++
	}
}
