package outlet

import (
	"os"
	"strings"
	"sync"
)

// Screen is a screen of its own on a terminal, painted anew again and again:
// what was there before comes back when it is closed or the program is
// stopped. While the program is in the background nothing is painted. Typed
// keys are not echoed; q is a wish to end. For one painter.
type Screen struct {
	Out *os.File // a terminal
	In  *os.File // the keyboard, if that is a terminal; nil: none

	mu    sync.Mutex // against a stop while painting
	shown bool       // the screen is ours now
	last  string     // what was painted last
	quit  chan struct{}
	job   job // what the system does about keys, stopping and the background
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// Open prepares; the screen is entered by the first Paint.
func (s *Screen) Open() {
	s.quit = make(chan struct{})
	s.job.open(s)
}

// Quit is closed when q was typed.
func (s *Screen) Quit() <-chan struct{} { return s.quit }

// Paint shows these lines, which are not longer than the terminal is wide. The
// error is that of writing.
func (s *Screen) Paint(lines []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = "\x1b[?2026h\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J\x1b[?2026l"
	return s.show()
}

// show paints what was painted last; hold mu.
func (s *Screen) show() error {
	if !s.job.foreground(s) {
		return nil
	}
	text := s.last
	if !s.shown {
		s.shown = true
		s.job.hush(s)
		text = enterScreen + text
	}
	_, err := s.Out.WriteString(text)
	return err
}

// leave gives the terminal back as it was; hold mu.
func (s *Screen) leave() {
	if !s.shown {
		return
	}
	s.shown = false
	s.Out.WriteString(leaveScreen)
	s.job.restore(s)
}

// Close gives the terminal back; these lines stay below what was there.
func (s *Screen) Close(last []string) {
	s.job.close(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.shown
	s.leave()
	if was && len(last) > 0 {
		s.Out.WriteString(strings.Join(last, "\n") + "\n")
	}
}
