package outlet

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", int32(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

// A screen is entered by the first painting, echoes no keys, ends at q, and
// gives the terminal back as it was, with the last lines below.
func TestScreen(t *testing.T) {
	t.Parallel()
	master, slave := terminal(t)
	s := Screen{Out: slave, In: slave}
	s.Open()
	if err := s.Paint([]string{"one", "two"}); err != nil {
		t.Fatal(err)
	}
	if echoes(t, slave) {
		t.Error("keys are echoed into the picture")
	}
	if _, err := master.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Quit():
	case <-time.After(10 * time.Second):
		t.Fatal("q is not heard")
	}
	s.Close([]string{"two"})
	if !echoes(t, slave) {
		t.Error("the keyboard is not given back")
	}
	said := ""
	for buf := make([]byte, 4096); !strings.Contains(said, leaveScreen+"two"); {
		n, err := master.Read(buf)
		if err != nil {
			break
		}
		said += string(buf[:n])
	}
	want := []string{enterScreen, "one\x1b[K", "two", leaveScreen + "two"}
	for _, w := range want {
		i := strings.Index(said, w)
		if i < 0 {
			t.Fatalf("%q is not next in what was written: %q", w, said)
		}
		said = said[i:]
	}
}
