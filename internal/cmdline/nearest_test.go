package cmdline

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	verbs := []string{"send", "read", "reply", "ls", "show", "wait", "team", "status", "history", "interrupt", "m", "wait-reply", "bob"}
	for word, want := range map[string]string{
		"sned": "send", "snd": "send", "raed": "read", "READ": "read", "lss": "ls", "sl": "ls", "bbo": "bob", "statsu": "status",
		"hist": "history", "reading": "read", "sendmail": "send", "waitreply": "wait-reply", "wait_reply": "wait-reply", "interupt": "interrupt",
		"M": "m", "rep": "reply",
		"x": "", "": "", "mail": "", "frobnicate": "", "q": "", "stop": "", "你好": "",
	} {
		if got, ok := Nearest(word, verbs); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// The distance is one for each slip, the same both ways, and nothing else is
// nearer than the word itself.
func TestDistance(t *testing.T) {
	word := rapid.SliceOfN(rapid.RuneFrom([]rune("abcé")), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (string(a) == string(b)) || d > max(len(a), len(b)) || d < len(a)-len(b) {
			t.Errorf("%q %q: %d", string(a), string(b), d)
		}
	})
	for pair, want := range map[[2]string]int{{"bbo", "bob"}: 1, {"ca", "abc"}: 3, {"kitten", "sitting"}: 3, {"", "ab"}: 2} {
		if got := distance([]rune(pair[0]), []rune(pair[1])); got != want {
			t.Errorf("%v: %d, want %d", pair, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "7d": 7 * day, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "0": 0, "0s": 0, "0d": 0,
		"1h30m": 90 * time.Minute, "90m": 90 * time.Minute, "1d1ms": day + time.Millisecond, "106751d": 106751 * day,
	} {
		if got, err := ParseDuration(s); got != want || err != nil {
			t.Errorf("%s: %v %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "5", "d", ".d", "-1s", "-0", "+1s", "1d-1h", "1d+1h", "12h1d", "1d2d", "2m3d", "1d 2h", "1w", "soon", "1e3s", "106752d",
		"106751d24h", "99999999999h", "NaNd", "１d"} {
		if got, err := ParseDuration(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "d"))
		if got, err := ParseDuration(d.String()); got != d || err != nil {
			t.Errorf("%v: %v %v", d, got, err)
		}
	})
}
