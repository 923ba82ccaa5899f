package crashtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// diskUse is how much disk the files below a directory take: a file with two names once.
func diskUse(t *testing.T, dir string) (n int64) {
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if is := info.Sys().(*syscall.Stat_t); !seen[is.Ino] {
			seen[is.Ino] = true
			n += is.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Large files are dropped, and every process that ingests them is killed. Nothing is lost, doubled or left behind but the
// originals, and a kill takes no more of the disk.
func TestStressLargeDrops(t *testing.T) {
	const size, files = 24 << 20, 8
	kills := 40
	if testround.IsLong {
		kills = 400
	}
	w := newWorld(t, memory(t), "alice", "bob")
	dropped := map[string]bool{} // their hashes
	r := rand.NewChaCha8([32]byte{byte(testround.Rand.Int())})
	looks := [][]string{{"read", "--peek", "--as", "bob"}, {"ls", "--as", "bob"}, {"team"}, {"watch", "bob", "--no-follow"}}
	killed, allowed := 0, diskUse(t, w.root)+size+1<<20 // a copy in the making
	for i := range kills {
		if i%(kills/files) == 0 {
			content := make([]byte, size)
			r.Read(content)
			sum := sha256.Sum256(content)
			dropped[hex.EncodeToString(sum[:])] = true
			inbox := filepath.Join(w.team(), "bob", "inbox")
			w.want(os.WriteFile(filepath.Join(inbox, "big.part"), content, 0o600))
			w.want(os.Rename(filepath.Join(inbox, "big.part"), filepath.Join(inbox, "big-"+hex.EncodeToString(sum[:4]))))
			w.want(os.WriteFile(filepath.Join(inbox, "small-"+hex.EncodeToString(sum[:4])), sum[:], 0o600))
			allowed += 2*size + 64<<10
		}
		cmd := w.command(nil, one(looks...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(500+testround.Rand.IntN(1<<(8+testround.Rand.IntN(8))))*time.Microsecond, func() { cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		if n := diskUse(t, w.root); n > allowed {
			t.Errorf("after kill %d: %d bytes of disk, %d more than there may be", i, n, n-allowed)
		}
	}
	for end := time.Now().Add(5 * time.Minute); ; { // one look takes in what it can in two seconds
		w.must("ls", "--as", "bob")
		whole, _ := filepath.Glob(filepath.Join(w.team(), "bob", "inbox", "*-*"))
		begun, _ := filepath.Glob(filepath.Join(w.team(), "bob", "inbox", "tmp", "*.drop"))
		if len(whole)+len(begun) == 0 || time.Now().After(end) {
			break
		}
	}
	if killed < kills/4 {
		t.Errorf("only %d were killed: this shows little", killed)
	}
	w.lookForLargeDrops(t, dropped)
}

// lookForLargeDrops fails the test unless bob has one message for each large file, and one for each small one.
func (w *world) lookForLargeDrops(t *testing.T, dropped map[string]bool) {
	inbox := filepath.Join(w.team(), "bob", "inbox")
	messages, _ := filepath.Glob(filepath.Join(inbox, "new", "*.json"))
	attached := map[string]int{}
	for _, file := range messages {
		var m struct{ Attachments []struct{ SHA256 string } }
		data, err := os.ReadFile(file)
		w.want(err)
		w.want(json.Unmarshal(data, &m))
		for _, a := range m.Attachments {
			attached[a.SHA256]++
		}
	}
	stored, err := os.ReadDir(filepath.Join(w.team(), ".files"))
	w.want(err)
	for _, e := range stored {
		content, err := os.ReadFile(filepath.Join(w.team(), ".files", e.Name()))
		w.want(err)
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != e.Name() || attached[e.Name()] != 1 {
			t.Errorf(".files/%s: of another content, or of %d messages", e.Name(), attached[e.Name()])
		}
	}
	for sum := range dropped {
		if attached[sum] != 1 {
			t.Errorf("%d messages for a file", attached[sum])
		}
	}
	for _, dir := range []string{"bob/inbox", "bob/inbox/tmp", "bob/inbox/bad"} {
		left, _ := os.ReadDir(filepath.Join(w.team(), dir))
		for _, e := range left {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				t.Errorf("left in %s: %s", dir, e.Name())
			}
		}
	}
	if len(messages) != 2*len(dropped) || len(stored) != 2*len(dropped) {
		t.Errorf("%d messages and %d attachments for %d files", len(messages), len(stored), 2*len(dropped))
	}
	w.failed(t)
}
