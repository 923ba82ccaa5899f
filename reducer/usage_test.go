package reducer

import (
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

// What cannot be a number of tokens or an amount of money changes nothing, also where a log has it.
func TestUsageThatIsNone(t *testing.T) {
	var s State
	for i, extra := range []string{
		`{"input_tokens":-5}`, `{"input_tokens":1.5}`, `{"input_tokens":1e3}`, `{"input_tokens":"5"}`, `{"input_tokens":1000000000000001}`,
		`{"input_tokens":99999999999999999999999}`, `{"input_tokens":[1]}`, `{"input_tokens":null}`, `{"total_tokens":0}`,
		`{"cost":-1,"currency":"USD"}`, `{"cost":"1","currency":"USD"}`, `{"cost":1e400,"currency":"USD"}`, `{"cost":1e13,"currency":"USD"}`,
		`{"cost":0,"currency":"USD"}`, `{"cost":1}`, `{"cost":1,"currency":"usd"}`, `{"cost":1,"currency":"USDT"}`, `{"cost":{"amount":1},"currency":"USD"}`,
	} {
		s.Apply(&wire.Event{Seq: uint64(i + 1), Kind: wire.Usage, Extra: []byte(extra)})
		if s.Usage != nil {
			t.Fatal(extra, s.Usage)
		}
	}
}

// A State that was copied keeps its figures when the other goes on, and many conversations do not make it grow.
func TestUsageIsBounded(t *testing.T) {
	var s State
	tell := func(session string, cost float64) {
		e := wire.Event{Seq: s.Seq + 1, Kind: wire.Usage, Session: session}.With(wire.FieldCost, cost)
		e = e.With(wire.FieldCurrency, "USD").With(wire.FieldTotalTokens, uint64(wire.MaxTokens))
		s.Apply(&e)
	}
	tell("s0", 0.1)
	copied := s
	want := fromJSON(&s)
	for i := range 100 {
		tell(string(rune('A'+i)), 0.2)
	}
	if d := gocmp.Diff(want, copied, gocmp.AllowUnexported(State{}, Session{})); d != "" {
		t.Error(d)
	}
	if len(s.UsageOf) != maxConversations || math.Abs(s.Usage.Cost-20.1) > 1e-9 || s.Usage.TotalTokens != 101*wire.MaxTokens {
		t.Error(len(s.UsageOf), s.Usage)
	}
	most := Figures{InputTokens: math.MaxUint64}
	if sum := most.Plus(most); sum.InputTokens != math.MaxUint64 {
		t.Error(sum)
	}
}
