package testagent

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// frame is the part of the screen that changes, with the cursor's position.
type frame struct {
	lines []string
	x, y  int
}

// painter writes frames to the terminal, each over the one before, of which equal lines stay. The transcript above them
// scrolls away.
type painter struct {
	drawn frame
	title string

	declared string
}

// show writes new lines of the transcript and a frame below them. The title comes first, so that a reader never sees
// the new screen with the old title. What it declares, a sequence or "", comes before both.
func (p *painter) show(fresh []string, f frame, title, declared string, rows int) {
	if over := len(f.lines) - rows; over > 0 {
		f.lines, f.y = f.lines[over:], max(f.y-over, 0)
	}
	var b strings.Builder
	if declared != p.declared {
		b.WriteString(declared)
		p.declared = declared
	}
	if title != p.title {
		b.WriteString("\x1b]0;" + title + "\x07")
		p.title = title
	}
	if len(fresh) > 0 || !slices.Equal(f.lines, p.drawn.lines) || f.x != p.drawn.x || f.y != p.drawn.y {
		b.WriteString("\x1b[?2026h\x1b[?25l\r" + up(p.drawn.y))
		for i, line := range append(fresh, f.lines...) {
			if i > 0 {
				b.WriteString("\r\n")
			}
			if len(fresh) > 0 || i >= len(p.drawn.lines) || line != p.drawn.lines[i] {
				b.WriteString("\x1b[2K" + line + reset)
			}
		}
		if len(fresh) > 0 || len(f.lines) < len(p.drawn.lines) {
			b.WriteString("\x1b[J") // what is left of a longer frame
		}
		b.WriteString("\r" + up(len(f.lines)-1-f.y))
		fmt.Fprintf(&b, "\x1b[%dG", f.x+1)
		b.WriteString("\x1b[?2026l")
		p.drawn = f
	}
	os.Stdout.WriteString(b.String())
}

func up(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA", n)
}
