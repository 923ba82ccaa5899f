package presence

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Used says what was used in a few words: "30.2k tokens, 0.12 USD"; "" for nothing.
func Used(f reducer.Figures) string {
	var parts []string
	if f.TotalTokens > 0 {
		parts = append(parts, Tokens(f.TotalTokens)+" tokens")
	}
	if f.Cost > 0 {
		parts = append(parts, Money(f))
	}
	return strings.Join(parts, ", ")
}

// Tokens writes a number of tokens for people, cut to a tenth: 950, 30.2k, 2M.
func Tokens(n uint64) string {
	for _, unit := range []struct {
		tenth uint64
		name  string
	}{{1e11, "T"}, {1e8, "G"}, {1e5, "M"}, {1e2, "k"}} {
		if tenths := n / unit.tenth; tenths >= 10 {
			return strings.TrimSuffix(fmt.Sprintf("%d.%d", tenths/10, tenths%10), ".0") + unit.name
		}
	}
	return fmt.Sprint(n)
}

// Money writes an amount for people, with its currency: 3.4 USD, 0.0123 USD; "" for none.
func Money(f reducer.Figures) string {
	if f.Cost == 0 {
		return ""
	}
	digits := 1e4
	if f.Cost >= 1 {
		digits = 100
	}
	return strconv.FormatFloat(math.Round(f.Cost*digits)/digits, 'f', -1, 64) + " " + f.Currency
}

// isUsage reports whether figures that another machine tells can be some.
func isUsage(f reducer.Figures) bool {
	isMoney := wire.IsCurrency(f.Currency) && f.Cost > 0 && f.Cost <= wire.MaxCost
	return isMoney || f.Cost == 0 && f.Currency == ""
}
