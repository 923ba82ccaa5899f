//go:build unix

package crashtest

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// A reader whose output nobody takes holds others up for two seconds and no
// longer, and takes nothing with it when it goes.
func TestBlockedReader(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "left", "late"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quick(t), takers...)
			for range 30 {
				tok, text := write(7000)
				w.begin(tok, "alice", "bob")
				w.stored(tok, w.must("send", "bob", "--as", "alice", "--json", "--", text))
			}
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			blocked := w.command(nil, "read", "--full", "--as", "bob")
			blocked.Stdout = in
			if err := blocked.Start(); err != nil {
				t.Fatal(err)
			}
			in.Close()
			// It has the lock once there is something in the pipe.
			first := make([]byte, 10)
			if _, err := out.Read(first); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r := w.pipe(call{args: []string{"read", "--full", "--as", "bob"}}, "bob", []int{0}, all)
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("held up for %s", took)
			}
			if seen, _ := shown(r.out); len(seen) != 30 {
				t.Errorf("%d of 30 messages shown", len(seen))
			}
			// One more, which the blocked one does not know of.
			tok, text := write(100)
			w.begin(tok, "alice", "bob")
			w.stored(tok, w.must("send", "bob", "--as", "alice", "--json", "--", text))
			rest := ""
			switch how {
			case "killed":
				blocked.Process.Kill()
			case "left":
				out.Close()
			case "late":
				rest = string(first) + all(out)
			}
			blocked.Wait()
			if how == "late" {
				if seen, _ := shown(rest); len(seen) != 30 {
					t.Errorf("the late one was shown %d of 30", len(seen))
				}
			}
			c := w.settle()
			w.judge(t, c)
			if err := c.lies("bob", w.posts[key{"bob", tok}].id, "new"); err != nil {
				t.Errorf("what came later: %v", err)
			}
			if r := w.must("ls", "--count", "--as", "bob"); r.out != fmt.Sprintln(1) {
				t.Errorf("unread: %s", r.out)
			}
		})
	}
}
