//go:build unix

package crashtest

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// takers are all who read mail.
var takers = []string{"alice", "bob", "carol", "dave", "erin"}

// whoReads says who reads, and which exit codes are right for them: the spare
// agent may not be there.
func whoReads() (string, []int) {
	me := one(takers)
	if me == "erin" {
		return me, []int{0, 3}
	}
	return me, []int{0}
}

// pipe runs a process whose output goes to f through a pipe, and notes what f
// says that it got.
func (w *world) pipe(c call, me string, codes []int, f func(*os.File) string) result {
	out, in, err := os.Pipe()
	if err != nil {
		w.t.Error(err)
		return result{code: -1}
	}
	got := make(chan string, 1)
	go func() {
		s := f(out)
		out.Close()
		got <- s
	}()
	c.out = in
	r := w.run(c)
	in.Close()
	r.out = <-got
	w.saw(me, r.out)
	w.expect(r, codes...)
	return r
}

// share notes what a reader got who was neither killed nor slow: no other such
// reader may get it.
func (w *world) share(me string, r result, took time.Duration) {
	if r.code != 0 || r.err != "" || took > time.Second {
		return
	}
	tokens, _ := shown(r.out)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tokens {
		w.alone[key{me, t}]++
		w.taken[key{me, t}] = time.Now()
	}
}

// all reads to the end.
func all(out *os.File) string {
	b, _ := io.ReadAll(out)
	return string(b)
}

// read reads everything that comes, until it is killed.
func (w *world) read() {
	me, codes := whoReads()
	args := []string{"read", "--as", me}
	switch rand.IntN(5) {
	case 0:
		args = append(args, "--full")
	case 1:
		args = append(args, "--limit", "3")
	case 2:
		args = append(args, "--from", "alice")
	}
	began := time.Now()
	r := w.pipe(call{args: args, kill: mortal()}, me, codes, all)
	w.share(me, r, time.Since(began))
}

// cutRead goes away after some bytes, as a pager that is quit does; at most
// after a second and a half, since a reader who stays for two and reads nothing
// is taken for one who reads later.
func (w *world) cutRead() {
	me, codes := whoReads()
	n := rand.IntN(1 << (4 + rand.IntN(12)))
	w.pipe(call{args: []string{"read", "--as", me}, kill: mortal()}, me, append(codes, 1), func(out *os.File) string {
		b := make([]byte, n)
		out.SetReadDeadline(time.Now().Add(1200 * time.Millisecond))
		m, _ := io.ReadFull(out, b)
		if rand.IntN(20) == 0 {
			time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		}
		return string(b[:m])
	})
}

// slowRead does not read for longer than the lock is held, and then everything.
func (w *world) slowRead() {
	me, codes := whoReads()
	w.pipe(call{args: []string{"read", "--as", me}}, me, codes, func(out *os.File) string {
		time.Sleep(time.Duration(1500+rand.IntN(1500)) * time.Millisecond)
		return all(out)
	})
}

// headRead is `atm read | head -3`.
func (w *world) headRead() {
	me, _ := whoReads()
	cmd := exec.Command("sh", "-c", `"$0" read --as "$1" --root "$2" 2>&3 | head -n "$3"`, w.atm, me, w.root, []string{"1", "3", "8", "30"}[rand.IntN(4)])
	cmd.Env = w.command(nil).Env
	said, err := os.CreateTemp(w.home, "stderr")
	if err != nil {
		w.t.Error(err)
		return
	}
	defer os.Remove(said.Name())
	defer said.Close()
	cmd.ExtraFiles = []*os.File{said}
	out, _ := cmd.Output()
	w.saw(me, string(out))
	words, _ := os.ReadFile(said.Name())
	w.proper(result{args: []string{"read", "|", "head"}, err: string(words)})
}

// jsonRead has one document: it is taken as a whole or not at all.
func (w *world) jsonRead() {
	me, codes := whoReads()
	n := -1
	if rand.IntN(2) == 0 {
		n = rand.IntN(20_000)
	}
	var got string
	w.pipe(call{args: []string{"read", "--json", "--as", me}, kill: mortal()}, me, append(codes, 1), func(out *os.File) string {
		if n < 0 {
			got = all(out)
		} else {
			b := make([]byte, n)
			out.SetReadDeadline(time.Now().Add(1200 * time.Millisecond))
			m, _ := io.ReadFull(out, b)
			got = string(b[:m])
		}
		return ""
	})
	w.sawAll(me, inJSON(got))
}

// inJSON are the texts in a whole document of read, or of send --wait-reply.
func inJSON(s string) (out []token) {
	var list struct {
		Messages []letter `json:"messages"`
		Reply    letter   `json:"reply"`
	}
	if json.Unmarshal([]byte(s), &list) != nil {
		return nil
	}
	for _, m := range append(list.Messages, list.Reply) {
		if t, _ := tokenOf(m.Body); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// fileRead writes into a file, or onto a device that is full.
func (w *world) fileRead() {
	me, codes := whoReads()
	name := filepath.Join(w.home, "read"+newID(0))
	if rand.IntN(4) == 0 {
		name, codes = "/dev/full", append(codes, 1)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return // no /dev/full here
	}
	defer f.Close()
	r := w.run(call{args: []string{"read", "--as", me}, out: f, kill: mortal()})
	if name != "/dev/full" {
		defer os.Remove(name)
		b, _ := os.ReadFile(name)
		w.saw(me, string(b))
	}
	w.expect(r, codes...)
}

// waitRead waits for mail, and is killed before or after, or waits in vain.
func (w *world) waitRead() {
	me, codes := whoReads()
	c := call{args: []string{"read", "--wait", "--timeout", "1s", "--as", me}, kill: 5 * mortal()}
	if me == "erin" {
		codes = append(codes, 1) // retired while it waits
	}
	w.pipe(c, me, append(codes, 4), all)
}

// follow reads what comes until it is killed.
func (w *world) follow() {
	me := one(readers)
	kill := time.Duration(20+rand.IntN(800)) * time.Millisecond
	w.pipe(call{args: []string{"read", "--follow", "--as", me}, kill: kill}, me, nil, all)
}

// ask sends and waits for the answer, which somebody gives.
func (w *world) ask() {
	t, text := write(200)
	w.begin(t, "alice", "bob")
	id := newID(0)
	var answer string
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		at, reply := write(someSize())
		w.begin(at, "bob", "alice")
		w.excuse("bob", id)
		r := w.run(call{args: []string{"reply", id, "--as", "bob", "--json", "--", reply}, kill: mortal()})
		w.stored(at, r)
		w.expect(r, 0, 3) // 3: not there yet
	}()
	c := call{args: []string{"send", "bob", "--as", "alice", "--id", id, "--wait-reply", "--timeout", "400ms", "--", text}, kill: 5 * mortal()}
	w.pipe(c, "alice", []int{0, 4}, func(out *os.File) string {
		answer = all(out)
		return answer
	})
	<-done
	if strings.HasPrefix(answer, "sent "+id[30:]+" to bob (") {
		var p printed
		json.Unmarshal([]byte(`{"id":"`+id+`","delivered":[{"to":"bob"}]}`), &p)
		w.promise(t, p)
	}
}
