package watcher
import ("testing";"os";"fmt";"time";"path/filepath";"context";"runtime"
"github.com/fsnotify/fsnotify"
"github.com/agentteammail/atm/mailbox"
"golang.org/x/sys/unix";"unsafe")
func round(kind string, b *testing.B, bob *mailbox.Box, w *writer, n int) []float64 {
	got := map[string]int64{}
	dir := filepath.Join(bob.Path(),"inbox","new")
	switch kind {
	case "raw": return rawRound(b,bob,w,n)
	case "ours": return watcherRound(b,bob,w,n)
	case "netpoll":
		fd,_ := unix.InotifyInit1(unix.IN_CLOEXEC|unix.IN_NONBLOCK)
		f := os.NewFile(uintptr(fd),"")
		defer f.Close()
		unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO)
		w.start(n)
		var buf [4096]byte
		for len(got)<n {
			m,_ := f.Read(buf[:])
			now := time.Now().UnixNano()
			for off := 0; off < m; {
				e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[off]))
				off += unix.SizeofInotifyEvent
				got[string(buf[off:off+36])] = now
				off += int(e.Len)
			}
		}
	case "rawget":
		fd,_ := unix.InotifyInit1(unix.IN_CLOEXEC)
		defer unix.Close(fd)
		unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO)
		v,_ := bob.Open(); defer v.Close()
		w.start(n)
		var buf [4096]byte
		for len(got)<n {
			m,_ := unix.Read(fd, buf[:])
			for off := 0; off < m; {
				e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[off]))
				off += unix.SizeofInotifyEvent
				k,_ := keyOfName(string(buf[off:off+41]))
				it,err := v.Get(k.id())
				now := time.Now().UnixNano()
				if err!=nil {panic(err)}
				got[string(it.ID)] = now
				off += int(e.Len)
			}
		}
	case "fsnotify":
		fw,_ := fsnotify.NewWatcher(); defer fw.Close()
		fw.Add(dir)
		w.start(n)
		for e := range fw.Events {
			if !e.Has(fsnotify.Create) {continue}
			got[filepath.Base(e.Name)[:36]] = time.Now().UnixNano()
			if len(got)==n {break}
		}
	case "hop":
		fw,_ := fsnotify.NewWatcher(); defer fw.Close()
		fw.Add(dir)
		w.start(n)
		c := make(chan string,100)
		go func(){ k:=0; for e := range fw.Events {
			if !e.Has(fsnotify.Create) {continue}
			c <- filepath.Base(e.Name)[:36]; k++
			if k==n {break}
		}}()
		for len(got)<n { x := <-c
			got[x] = time.Now().UnixNano()
		}
	}
	return w.delays(n, got)
}
func BenchmarkParts(b *testing.B) {
	s := openStore(b, b.TempDir(), "bob")
	bob := s.Box("bob")
	w := startWriter(b, bob)
	kinds := []string{"raw","netpoll","rawget","fsnotify","hop","ours"}
	res := map[string][]float64{}
	for b.Loop() { for _,k := range kinds { res[k]=append(res[k], round(k,b,bob,w,50)...)} }
	for _,k := range kinds { fmt.Printf("%-10s p10 %.1f p50 %.1f p90 %.1f\n", k, at(res[k],10), at(res[k],50), at(res[k],90)) }
	_ = context.Background; _ = runtime.GC
}
