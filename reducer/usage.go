package reducer

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Usage is what an agent's programs have told of the tokens and the money that they have used: of all conversations. What
// they do not tell is not there.
type Usage struct {
	Figures
	Turn Figures `json:"turn,omitzero"` // of these, what was told since the last turn began of which any was told

	ContextUsed uint64    `json:"context_used,omitempty"` // tokens, as last told; 0: not told
	ContextSize uint64    `json:"context_size,omitempty"`
	At          time.Time `json:"at"` // when it was last told
}

// conversationUsage has the totals of one conversation.
type conversationUsage struct {
	ID string `json:"session,omitempty"` // "": its program names none
	Figures
}

// Figures are tokens and money.
type Figures struct {
	InputTokens  uint64 `json:"input_tokens,omitempty"` // with those from a cache
	OutputTokens uint64 `json:"output_tokens,omitempty"`
	CachedTokens uint64 `json:"cached_tokens,omitempty"` // input from a cache
	TotalTokens  uint64 `json:"total_tokens,omitempty"`

	Cost     float64 `json:"cost,omitempty"`
	Currency string  `json:"currency,omitempty"` // of Cost; "": there is none
}

// maxConversations is how many conversations have their totals kept, so that an older total counts for nothing.
const maxConversations = 32

// combine combines two figures one by one. Money in another currency than the first one's is left out.
func (f Figures) combine(g Figures, tokens func(a, b uint64) uint64, money func(a, b float64) float64) Figures {
	out := Figures{
		InputTokens: tokens(f.InputTokens, g.InputTokens), OutputTokens: tokens(f.OutputTokens, g.OutputTokens),
		CachedTokens: tokens(f.CachedTokens, g.CachedTokens), TotalTokens: tokens(f.TotalTokens, g.TotalTokens),
	}
	currency := cmp.Or(f.Currency, g.Currency)
	if g.Currency != currency {
		g.Cost = 0
	}
	if cost := money(f.Cost, g.Cost); cost > 0 {
		out.Cost, out.Currency = cost, currency
	}
	return out
}

// Plus returns the sum of two figures.
func (f Figures) Plus(g Figures) Figures {
	return f.combine(g, func(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }, func(a, b float64) float64 { return a + b })
}

// Minus returns by how much the figures are above others.
func (f Figures) Minus(g Figures) Figures {
	return f.combine(g, func(a, b uint64) uint64 { return a - min(a, b) }, func(a, b float64) float64 { return a - b })
}

// raisedTo returns the higher of each figure. A total that no program has told is that of input and output.
func (f Figures) raisedTo(g Figures) Figures {
	out := f.combine(g, func(a, b uint64) uint64 { return max(a, b) }, math.Max)
	if g.TotalTokens == 0 {
		out.TotalTokens = max(out.TotalTokens, out.InputTokens+out.OutputTokens)
	}
	return out
}

// Used returns what the agent has used as far as its programs tell.
func (s *State) Used() Figures {
	if s.Usage == nil {
		return Figures{}
	}
	return s.Usage.Figures
}

// figures are those that an event tells. What is no number or cannot be is not told, nor is money in another currency than
// the agent's first.
func (s *State) figures(e *event) Figures {
	f := Figures{
		InputTokens: e.tokens(wire.FieldInputTokens), OutputTokens: e.tokens(wire.FieldOutputTokens),
		CachedTokens: e.tokens(wire.FieldCachedTokens), TotalTokens: e.tokens(wire.FieldTotalTokens),
	}
	cost, err := strconv.ParseFloat(string(e.Raw(wire.FieldCost)), 64)
	currency := e.Text(wire.FieldCurrency)
	isOurs := wire.IsCurrency(currency) && currency == cmp.Or(s.Used().Currency, currency)
	if err == nil && cost > 0 && cost <= wire.MaxCost && isOurs {
		f.Cost, f.Currency = cost, currency
	}
	return f
}

func (e *event) tokens(name string) uint64 {
	if n, ok := e.Uint(name); ok && n <= wire.MaxTokens {
		return n
	}
	return 0
}

// addUsage adds what the totals of a conversation are above those that were told before.
func (s *State) addUsage(e *event) {
	figures, used, size := s.figures(e), e.tokens(wire.FieldContextUsed), e.tokens(wire.FieldContextSize)
	if figures == (Figures{}) && used == 0 && size == 0 {
		return
	}
	var u Usage // a copy: another State may have the old one
	if s.Usage != nil {
		u = *s.Usage
	}
	totals, before := conversationUsage{ID: e.session}, Figures{}
	isThis := func(c conversationUsage) bool { return c.ID == e.session }
	if i := slices.IndexFunc(s.UsageOf, isThis); i >= 0 {
		before = s.UsageOf[i].Figures
	}
	totals.Figures = before.raisedTo(figures)
	s.UsageOf = append(slices.DeleteFunc(slices.Clone(s.UsageOf), isThis), totals)
	s.UsageOf = s.UsageOf[max(0, len(s.UsageOf)-maxConversations):]
	more := totals.Minus(before)
	u.Figures, u.At = u.Plus(more), e.at
	if used > 0 || size > 0 {
		u.ContextUsed, u.ContextSize = used, size
	}
	if ses := s.SessionOf(e.session); ses != nil && ses.Turn.Seq > 0 && (e.turn == "" || e.turn == ses.Turn.ID) {
		if s.UsageTurn != ses.Turn.Seq {
			s.UsageTurn, u.Turn = ses.Turn.Seq, Figures{}
		}
		u.Turn = u.Turn.Plus(more)
	}
	s.Usage = &u
}

// closeUnnamedUsage has the next totals without a conversation count as those of a new one.
func (s *State) closeUnnamedUsage() {
	of := slices.DeleteFunc(slices.Clone(s.UsageOf), func(c conversationUsage) bool { return c.ID == "" })
	if s.UsageOf = of; len(of) == 0 {
		s.UsageOf = nil // as JSON gives it back
	}
}
