package setup

import (
	"slices"
	"testing"

	"github.com/agentteammail/atm/ptyrun/process"
)

func TestNamesOfTerminals(t *testing.T) {
	envs := [][]string{
		1: {"HOME=/h", "ATM_AGENT=bob"},
		2: {"HOME=/h", "ATM_AGENT=carl"},
		3: {"HOME=/h", "ATM_AGENT=dora"},                // elsewhere
		4: {"HOME=/other", "ATM_AGENT=eve"},             // with another server
		5: {"HOME=/h", "ATM_AGENT=fred", "ATM_RUN=run"}, // run by atm
		6: {"HOME=/h"},
	}
	for _, test := range []struct {
		pids string
		want []string
	}{
		{"1", []string{"bob"}}, {"23456", []string{"carl"}}, {"112", []string{"bob", "carl"}}, {"3456", nil},
	} {
		var all []process.Info
		for _, digit := range test.pids {
			all = append(all, process.Info{PID: int(digit - '0')})
		}
		got := namesOf(all, []string{"HOME=/h", "ATM_AGENT=bob"}, func(p process.Info) bool { return p.PID != 3 },
			func(p process.Info) []string { return envs[p.PID] })
		if !slices.Equal(got, test.want) {
			t.Errorf("terminals %s: %v, want %v", test.pids, got, test.want)
		}
	}
}
