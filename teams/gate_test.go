package teams

import "testing"

// Of a member that is retired meanwhile nothing is known.
func TestForecastUnknown(t *testing.T) {
	m, err := newTeam(t, newRoot(t)).Summary("bob")
	if got := m.Forecast(false); err == nil || got != "unknown" {
		t.Errorf("%q, %v", got, err)
	}
}
