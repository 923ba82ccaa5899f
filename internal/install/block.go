package install

import (
	"github.com/agentteammail/atm/internal/confedit"
)

// rules is a file of our own: a block, which is all there is in it unless
// somebody adds to the file.
func (p *Place) rules(tool, path, body string) part {
	return blockPart(path, "#", tool, body, "runs without asking: atm "+verbList(), "asked about again: rules for atm taken out")
}

// blockPart is a file with one block of ours. mark begins a comment.
func blockPart(path, mark, tool, body, added, removed string) part {
	b := confedit.Block{
		Begin: mark + " atm begin: atm install " + tool + " writes this, atm uninstall " + tool + " removes it",
		End:   mark + " atm end",
	}
	return part{
		path: path, format: lines,
		ours: func(s *sheet) bool { _, _, _, ok := b.Find(s.text.Bytes()); return ok },
		fill: func(s *sheet) error {
			if e := b.Set(s.text.Bytes(), body); e != nil {
				s.text.Apply(e)
				s.say("%s", added)
			}
			return nil
		},
		clear: func(s *sheet) error {
			if e := b.Remove(s.text.Bytes()); e != nil {
				s.text.Apply(e)
				s.say("%s", removed)
				// Without a note the file is ours where the block was all of it.
				if s.old == nil && confedit.Blank(s.text.Bytes()) {
					s.remove = true
				}
			}
			return nil
		},
	}
}
