package screen

import (
	"fmt"
	"strconv"
)

// maxReplies bounds the bytes of answers that nobody fetches; an answer that
// does not fit is not given, because half of one would be typed junk.
const maxReplies = 4096

// Replies are the answers to queries since the last call, to be written to the
// program as if typed; nil: none.
func (s *Screen) Replies() []byte {
	r := s.replies
	s.replies = nil
	return r
}

func (s *Screen) reply(answer string) {
	if len(s.replies)+len(answer) <= maxReplies {
		s.replies = append(s.replies, answer...)
	}
}

// answerStatus is DSR.
func (s *Screen) answerStatus(what int, prefix string) {
	switch {
	case what == 5 && prefix == "":
		s.reply("\x1b[0n")
	case what == 6:
		y := s.y
		if s.modes.Origin {
			y -= s.top
		}
		s.reply("\x1b[" + prefix + strconv.Itoa(y+1) + ";" + strconv.Itoa(s.x+1) + "R")
	}
}

// maxTitles bounds the stack of titles.
const maxTitles = 10

// window is the part of xterm's window operations that needs no window: the
// size in characters, and the stack of titles. The title itself is never
// answered: it would be a way to type.
func (s *Screen) window(p *params) {
	title := p.at(1, 0) != 1 // 1 is the icon's
	switch p.at(0, 0) {
	case 18:
		s.reply("\x1b[8;" + strconv.Itoa(s.rows) + ";" + strconv.Itoa(s.cols) + "t")
	case 22:
		if title {
			if len(s.titles) == maxTitles {
				s.titles = append(s.titles[:0], s.titles[1:]...)
			}
			s.titles = append(s.titles, s.title)
		}
	case 23:
		if n := len(s.titles); title && n > 0 {
			s.setTitle(s.titles[n-1])
			s.titles = s.titles[:n-1]
		}
	}
}

// The colours that a program hears when it asks: light on black, as most
// terminals of agents are.
const (
	foreground = 0xd0d0d0
	background = 0x000000
)

// answerColor answers an OSC query for a colour, ended as the query was.
func (s *Screen) answerColor(what string, rgb int, end string) {
	r, g, b := rgb>>16, rgb>>8&0xff, rgb&0xff
	s.reply(fmt.Sprintf("\x1b]%s;rgb:%02x%02[2]x/%02x%02[3]x/%02x%02[4]x%s", what, r, g, b, end))
}

// paletteRGB is xterm's palette.
func paletteRGB(i int) int {
	basic := [16]int{
		0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
		0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
	}
	switch {
	case i < 16:
		return basic[i]
	case i < 232:
		i -= 16
		level := func(n int) int {
			if n == 0 {
				return 0
			}
			return 55 + 40*n
		}
		return level(i/36)<<16 | level(i/6%6)<<8 | level(i%6)
	}
	return (8 + 10*(i-232)) * 0x010101
}
