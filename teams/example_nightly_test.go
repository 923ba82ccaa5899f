package teams_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Nightly batch: each member does its own jobs, concurrently, until all are done or the time is up; a person gets the
// summary by mail.
func Example_nightly() {
	ctx, stop := context.WithCancel(context.Background())
	team, done := aTeam("alice", "bob", "me", "script")
	defer done()
	defer stop()
	plays(ctx, team, "alice", says("done"))
	plays(ctx, team, "bob", says("")) // never answers

	jobs := []struct {
		name, what, who string
	}{
		{"clean", "Clean up.", "alice"}, {"logs", "Read the logs.", "bob"}, {"tests", "Mend the tests.", "alice"},
	}
	night, up := context.WithCancelCause(ctx) // with real agents: context.WithTimeout(ctx, 8*time.Hour)
	defer up(nil)
	results := make([]string, len(jobs))
	var working sync.WaitGroup
	for _, who := range []string{"alice", "bob"} {
		working.Go(func() {
			for i, job := range jobs {
				if job.who != who {
					continue
				}
				if answer, err := ask(night, team, who, "monday/"+job.name, job.what); err != nil {
					results[i] = fmt.Sprintf("%s: NOT DONE by %s: %v", job.name, who, err)
				} else {
					results[i] = job.name + ": " + answer
				}
			}
			if who == "alice" {
				up(errors.New("the night is over"))
			}
		})
	}
	working.Wait()
	summary := ""
	for _, line := range results {
		summary += line + "\n"
	}
	if err := send(ctx, team, "me", "monday/summary", summary); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(mailOf(ctx, team, "me").Body)
	// Output:
	// clean: done
	// logs: NOT DONE by bob: the night is over
	// tests: done
}
