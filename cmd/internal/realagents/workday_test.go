//go:build linux

package realagents

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/screen"
)

// A workday is a team of five agents and a person that works for a while: cla and oph are programs that the person has
// started, clr, opr and acp run under atm. drv is the script, w1 and w2 take from jobs, and dan is on another machine.
type workday struct {
	*byHand
	listeners map[string]*listener
	lasts     time.Duration
	began     time.Time
	asking    sync.WaitGroup
	rounds    int // of postLimit

	lock     sync.Mutex // of what is below
	n        int        // tokens given
	copies   []*mailCopy
	jobs     map[string]*job // by id
	count    map[string]int
	faults   []string
	samples  []sample
	programs map[string]*usage // by label and process
	people   map[string]map[string]sight
	received map[string]bool // short ids that drv has read
	open     map[string]*window
	beside   map[string]*helper
	asked    map[string]time.Time // questions, and when each is to be answered: answer's alone
}

// A mailCopy is one recipient's copy of a message.
type mailCopy struct {
	token, to, kind, id string
	isTaken             bool // withdrawn before it was read, by atm's word
	mayCome             bool // the send failed or its recipient was told of its withdrawal
}

// A job is a message in the queue.
type job struct{ takes, acks, unmarked int }

// A sample is what atm said that an agent does.
type sample struct {
	at           time.Time
	agent, state string
	detail       string
	isShown      bool // the screen of a program that a person started says the same
}

var (
	byPerson = []string{"cla", "oph"}
	byRunner = []string{"clr", "opr", "acp"}
	workers  = append(slices.Clone(byPerson), byRunner...)
)

// farSSH is what a person may use who can log in to the machine far: the command runs there.
const farSSH = `#!/bin/sh
for command; do :; done
exec env HOME=%[1]s XDG_CONFIG_HOME=%[1]s/config XDG_STATE_HOME=%[1]s/state sh -c "cd; $command"
`

// A day with atm, in short: mail of all kinds, questions, limits, kills, restarts and a new version, and at its end each copy
// of each message is accounted for by what the models were told.
func TestWorkingDay(t *testing.T) {
	if os.Getenv("ATM_WORKDAY") == "" {
		t.Skip("takes long: make day")
	}
	lasts, err := time.ParseDuration(os.Getenv("ATM_WORKDAY"))
	seed := rand.Uint64()
	if text := os.Getenv("ATM_WORKDAY_SEED"); text != "" {
		var wrong error
		seed, wrong = strconv.ParseUint(text, 10, 64)
		err = errors.Join(err, wrong)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, ATM_WORKDAY_SEED=%d", lasts, seed)
	next := buildNext(t)
	d := newWorkday(t, lasts)
	r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	var all sync.WaitGroup
	stop := make(chan struct{})
	for _, do := range []func(){
		func() { d.traffic(r(1)) },
		func() { d.disturb(r(2), next) },
		func() { d.take("w1", r(3)) },
		func() { d.take("w2", r(4)) },
	} {
		all.Go(do)
	}
	var looking sync.WaitGroup
	answers := r(5)
	for _, do := range []func(){d.sample, d.readPeople, func() { d.answer(answers) }} {
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
					do()
				}
			}
		})
	}
	all.Wait()
	quiet := d.settle()
	close(stop)
	looking.Wait()
	d.report(quiet)
}

// buildNext builds atm as another version, and returns what puts it in the place of the first one.
func buildNext(t *testing.T) (upgrade func() error) {
	dir, err := os.MkdirTemp(filepath.Dir(bin), "atm-next-")
	if err != nil || scripts == "" {
		t.Fatal("building the next version: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	out, err := exec.Command("go", "build", "-ldflags", "-X main.version=v9.9.9", "-o", dir+"/", "../../../cmd/...").CombinedOutput()
	if err != nil {
		t.Fatalf("building the next version: %v\n%s", err, out)
	}
	return func() (err error) {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			err = errors.Join(err, os.Rename(filepath.Join(dir, f.Name()), filepath.Join(bin, f.Name())))
		}
		return err
	}
}

// newWorkday has everybody at work.
func newWorkday(t *testing.T, lasts time.Duration) *workday {
	claude, err := newKit(t, "claude"), error(nil)
	claude.useNewest()
	opencode := *claude
	opencode.program = "opencode"
	opencode.setup("")
	t.Cleanup(func() { ran[claude.dir] = "claude" + newest["claude"] + ", opencode" })
	claude.isPart = true // it proves nothing of one program
	// A subscriber has a limit.
	claude.changeRun("ANTHROPIC_API_KEY=fakefakefakefakefake", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fakefakefakefakefake")
	d := &workday{
		byHand:    &byHand{team: &team{kit: claude, dir: filepath.Join(claude.dir, "work"), home: filepath.Join(claude.dir, "home"), kits: map[string]*kit{}}},
		listeners: map[string]*listener{}, lasts: lasts,
		jobs: map[string]*job{}, count: map[string]int{}, programs: map[string]*usage{}, received: map[string]bool{},
		people: map[string]map[string]sight{"me": {}, "drv": {}, "dan": {}}, open: map[string]*window{}, beside: map[string]*helper{}, asked: map[string]time.Time{},
	}
	for _, agent := range workers {
		k := *claude
		if agent == "oph" || agent == "opr" || agent == "acp" {
			k = opencode
			k.run = filepath.Join(scripts, "run")
		}
		l := &listener{heard: map[string]map[string]sight{}, sent: map[string]bool{}}
		script := fmt.Sprintf("#!/bin/sh\nPORT=%s exec %s \"$@\"\n", k.standBefore(l.hear), k.run)
		k.run = filepath.Join(k.dir, "run-"+agent)
		if agent == "acp" {
			k.acp = []string{"acp"}
		}
		err = errors.Join(err, os.WriteFile(k.run, []byte(script), 0o755))
		d.listeners[agent], d.kits[agent] = l, &k
	}
	d.do(append([]string{"init", "me", "drv", "w1", "w2"}, workers...)...)
	d.do("team", "add", "jobs", "--shared")
	toml := "lead = \"me\"\n[members.me]\nperson = true\n[groups]\nagents = [\"" + strings.Join(workers, `", "`) + "\"]\n"
	for _, tool := range []string{"Bash", "bash", "execute"} {
		for _, command := range []string{"touch ok*", "sleep *", "atm *"} {
			toml += fmt.Sprintf("[[rules]]\ntool = \"%s(%s)\"\ndecision = \"allow\"\n", tool, command)
		}
	}
	for _, agent := range byRunner {
		program := cmp.Or(map[string]string{"acp": "acp"}[agent], d.kits[agent].program)
		toml += fmt.Sprintf("[members.%s]\ncommand = [%q]\ndriver = %q\n", agent, strings.Join(d.kits[agent].command(), `", "`), program)
	}
	toml = strings.ReplaceAll(toml, `\"`, `"`)
	if err = errors.Join(err, os.WriteFile(filepath.Join(d.dir, ".atm", "main", "team.toml"), []byte(toml), 0o600)); err != nil {
		t.Fatal(err)
	}
	d.install(claude)
	d.install(&opencode)
	d.settleFar()
	t.Cleanup(func() {
		for _, w := range d.open {
			w.kill()
		}
		for _, h := range d.beside {
			h.end(syscall.SIGKILL)
		}
	})
	for _, name := range []string{"tui", "web", "bridge", "watch"} {
		d.startBeside(name)
	}
	d.up(byRunner...)
	for _, agent := range byPerson {
		d.openWindow(agent)
	}
	d.began = time.Now()
	return d
}

// far is where the other machine's person lives.
func (d *workday) far() string { return filepath.Join(d.kit.dir, "far") }

func (d *workday) settleFar() {
	d.t.Helper()
	at := filepath.Join(d.kit.dir, "ssh")
	err := errors.Join(os.Mkdir(d.far(), 0o700), os.Mkdir(at, 0o700),
		os.WriteFile(filepath.Join(at, "ssh"), fmt.Appendf(nil, farSSH, d.far()), 0o755))
	if out, code := d.tryFar("init", "dan"); err != nil || code != 0 {
		d.t.Fatal(err, out)
	}
}

// tryFar runs atm on the other machine.
func (d *workday) tryFar(args ...string) (string, int) {
	cmd := exec.Command(filepath.Join(bin, "atm"), args...)
	far := d.far()
	cmd.Dir, cmd.Env = far, append(d.env(), "HOME="+far, "XDG_CONFIG_HOME="+far+"/config", "XDG_STATE_HOME="+far+"/state")
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		d.fault("atm on the other machine: %v", err)
		return "", 1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A helper is a program of atm's that a person leaves open, on a terminal of its own.
type helper struct {
	*process.Child
	read sync.WaitGroup
}

func (h *helper) end(signal syscall.Signal) {
	syscall.Kill(h.PID(), signal)
	<-h.Done()
	h.read.Wait()
}

var helperArgs = map[string][]string{
	"tui": {"atm", "tui", "--as", "me"}, "web": {"atm", "web", "--as", "me", "--no-open"}, "watch": {"atm", "pending", "--watch"},
	"bridge": {"atm", "bridge", "--ssh", "far", "--dir", "."},
}

var webAddress = regexp.MustCompile(`http://[^\s\x1b]+token=[0-9a-zA-Z]+`)

func (d *workday) startBeside(name string) {
	d.t.Helper()
	args := slices.Clone(helperArgs[name])
	args[0] = filepath.Join(bin, args[0])
	env := append(d.env(), "PATH="+filepath.Join(d.kit.dir, "ssh")+":"+bin+":"+os.Getenv("PATH"))
	child, err := process.Start(process.Command{Argv: args, Dir: d.dir, Env: env, Cols: 200, Rows: 30})
	if err != nil {
		d.t.Fatal(err)
	}
	h, isSeen := &helper{Child: child}, false
	h.read.Go(func() {
		s, buf := screen.New(200, 30, 100), make([]byte, 32<<10)
		for {
			n, err := h.Read(buf)
			if err != nil {
				return
			}
			s.Write(buf[:n])
			if replies := s.Replies(); len(replies) > 0 {
				h.Write(replies, time.Second)
			}
			if url := webAddress.FindString(strings.Join(s.Tail(100), "")); name == "web" && url != "" && !isSeen {
				isSeen = true
				h.read.Go(func() { d.browse(url) })
			}
		}
	})
	d.lock.Lock()
	defer d.lock.Unlock()
	d.beside[name] = h
}

// browse is a browser that has the page open, until the server ends.
func (d *workday) browse(url string) {
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	page, err := client.Get(url)
	if err != nil {
		return
	}
	page.Body.Close()
	base := url[:strings.Index(url, "/?")]
	if page, err = client.Get(base); err != nil { // the first one gave the cookie
		return
	}
	text, _ := io.ReadAll(page.Body)
	page.Body.Close()
	csrf := regexp.MustCompile(`csrf=([^"&]+)"`).FindSubmatch(text)
	if csrf == nil {
		d.fault("the web page has no stream: %d, %.200s", page.StatusCode, text)
		return
	}
	stream, err := client.Get(base + "/stream?csrf=" + string(csrf[1]))
	if err != nil {
		return
	}
	defer stream.Body.Close()
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			d.add("looks of the browser")
		}
	}
}

// openWindow starts a program as a person does, who says something first.
func (d *workday) openWindow(agent string) {
	d.t.Helper()
	s := &byHand{team: &team{kit: d.kits[agent], dir: d.dir, home: d.home, kits: d.kits}}
	d.listeners[agent].is("")
	w := s.start(agent)
	d.lock.Lock()
	d.open[agent] = w
	d.lock.Unlock()
	w.waitsFor("idle")
	d.listeners[agent].is("idle")
}

func (d *workday) add(what string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.count[what]++
}

func (d *workday) fault(format string, args ...any) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.faults = append(d.faults, time.Since(d.began).Round(time.Second).String()+" "+fmt.Sprintf(format, args...))
}

func (d *workday) newToken() string {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.n++
	return fmt.Sprintf("T%05dz", d.n)
}
