package watcher
import ("testing";"context";"os";"path/filepath";"golang.org/x/sys/unix"
"github.com/agentteammail/atm/mailbox";"github.com/agentteammail/atm/wire")
func BenchmarkViewGet(b *testing.B) {
	s := openStore(b, b.TempDir(), "bob")
	bob := s.Box("bob")
	m := message("alice", "a message of a usual length, that is to say rather a short one")
	p := &mailbox.Post{Message: m, To: []*mailbox.Box{bob}}
	mailbox.Deliver(context.Background(), p)
	v,_ := bob.Open()
	data,_ := m.Encode()
	b.Run("view", func(b *testing.B){ for b.Loop() { if _,err := v.Get(m.ID); err!=nil {b.Fatal(err)} } })
	b.Run("decode", func(b *testing.B){ for b.Loop() { wire.Decode(data) } })
	dir,_ := os.Open(filepath.Join(bob.Path(),"inbox","new"))
	fd := int(dir.Fd())
	b.Run("raw", func(b *testing.B){ for b.Loop() { 
		f,err := unix.Openat(fd, string(m.ID)+".json", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err!=nil {b.Fatal(err)}
		var st unix.Stat_t
		unix.Fstat(f,&st)
		buf := make([]byte, st.Size+1)
		unix.Read(f, buf)
		unix.Close(f)
	} })
}
