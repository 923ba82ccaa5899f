package command

import (
	"slices"

	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

// Usage shows what each member has used, as far as its program tells, and the sum: only the columns that say something.
func Usage(members []presence.Member, sum reducer.Figures) (lines []string) {
	rows := [][]string{{"", "tokens", "in", "cached", "out", "cost", "last turn", "context"}}
	for _, m := range members {
		if u := m.Usage; u != nil {
			rows = append(rows, append(figureCells(string(m.Name), u.Figures), presence.Used(u.Turn), ContextText(u)))
		}
	}
	rows = append(rows, append(figureCells("all", sum), "", ""))
	for column := len(rows[0]) - 1; column > 0; column-- {
		isFilled := func(row []string) bool { return row[column] != "" }
		if !slices.ContainsFunc(rows[1:], isFilled) {
			rows[0][column] = ""
		}
	}
	widths := columnWidths(rows)
	for _, row := range rows {
		lines = append(lines, alignRow(row, widths, make([]string, len(row))))
	}
	return lines
}

func figureCells(name string, f reducer.Figures) []string {
	cells := []string{name}
	for _, n := range []uint64{f.TotalTokens, f.InputTokens, f.CachedTokens, f.OutputTokens} {
		text := ""
		if n > 0 {
			text = presence.Tokens(n)
		}
		cells = append(cells, text)
	}
	return append(cells, presence.Money(f))
}

// ContextText says how full a context is: "15.5k of 200k"; "": nobody tells.
func ContextText(u *reducer.Usage) string {
	switch {
	case u.ContextSize > 0:
		return presence.Tokens(u.ContextUsed) + " of " + presence.Tokens(u.ContextSize)
	case u.ContextUsed > 0:
		return presence.Tokens(u.ContextUsed)
	}
	return ""
}
