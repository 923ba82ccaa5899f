//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agentteammail/atm/cmd/internal/testteam"
)

// A kitchen is a directory with the cookbook's team, played by fake agents.
type kitchen struct {
	*testteam.Team
	mark string // in the environment of everything that is started here

	limit string // LIMIT of the recipes
}

// mealTime limits a recipe on a slow machine.
const mealTime = 10 * time.Minute

func cookbook(name string) string {
	path, _ := filepath.Abs(filepath.Join("..", "..", "docs", "cookbook", name))
	return path
}

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	k := &kitchen{Team: testteam.New(t, "alice", "bob", "carol", "me", "script")}
	k.mark = "ATM_TEST_KITCHEN=" + filepath.Base(filepath.Dir(k.Dir)) + filepath.Base(k.Dir)
	k.Env = append(k.Env, "TZ=UTC", k.mark)
	for name, to := range map[string]string{"team.toml": ".atm/main/team.toml", "model.sh": "model.sh"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "cookbook", name))
		must(t, err)
		k.Write(to, string(data))
	}
	k.Write("jobs.txt", jobs)
	k.Write("opencode", "#!/bin/sh\nexec fakeagent \"$@\"\n") // which acts on nothing in a text
	t.Cleanup(func() {
		k.Command("atm", "down").Run()
		if left := k.left(); len(left) > 0 {
			t.Errorf("still running at the end: %q", left)
		}
	})
	return k
}

// A script is a running recipe, in a process group of its own as a terminal's shell starts it.
type script struct {
	*exec.Cmd
	out, errs bytes.Buffer
}

func (k *kitchen) start(shell, name string, args ...string) *script {
	k.Helper()
	s := &script{Cmd: k.Command(shell, append([]string{cookbook(name)}, args...)...)}
	s.Env = append(s.Env, "LIMIT="+k.limit)
	s.Stdout, s.Stderr, s.SysProcAttr = &s.out, &s.errs, &syscall.SysProcAttr{Setpgid: true}
	s.WaitDelay = time.Second // what outlives it is looked for by its mark
	must(k, s.Start())
	return s
}

// ends waits for the end of a recipe, and returns its exit code.
func (s *script) ends() int {
	over := time.AfterFunc(mealTime, func() { s.Process.Kill() })
	defer over.Stop()
	s.Wait() // its error is in the state
	return s.ProcessState.ExitCode()
}

// cook runs a recipe to its end, checks that nothing of it still runs, and returns its exit code, its result (the last
// line that is not from up or send) and all that it printed.
func (k *kitchen) cook(shell, name string, args ...string) (code int, last, all string) {
	k.Helper()
	s := k.start(shell, name, args...)
	code = s.ends()
	k.nothingRuns("after its end")
	return code, s.last(), s.out.String() + s.errs.String()
}

// left returns the commands of the processes that carry the mark.
func (k *kitchen) left() (left []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		env, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), k.mark) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil && len(line) > 0 {
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}

// nothingRuns waits until no process carries the mark.
func (k *kitchen) nothingRuns(when string) {
	k.Helper()
	if !within(3*time.Minute, func() bool { return len(k.left()) == 0 }) {
		k.Fatalf("%s there are still %q", when, k.left())
	}
}

// prompts counts the prompts that the models were shown.
func (k *kitchen) prompts() int {
	data, err := os.ReadFile(filepath.Join(k.Dir, "prompts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// mail returns all messages but acks and notices, as "from > to: body", sorted.
func (k *kitchen) mail() (all []string) {
	k.Helper()
	for _, agent := range []string{"alice", "bob", "carol", "me", "script"} {
		var list struct {
			Messages []struct{ From, Type, Body string }
		}
		must(k, json.Unmarshal([]byte(k.Atm("ls", agent, "--all", "--json", "--limit", "1000")), &list))
		for _, m := range list.Messages {
			if m.Type == "" || m.Type == "message" {
				from, _, _ := strings.Cut(m.From, "@")
				all = append(all, fmt.Sprintf("%s > %s: %s", from, agent, strings.TrimSpace(m.Body)))
			}
		}
	}
	slices.Sort(all)
	return all
}

// A recipe is a script of the cookbook, and what it does with the kitchen's team.
type recipe struct {
	name string
	args []string
	out  string                                // what it prints, but for the words of `atm up` and `atm send`
	wide int                                   // how many agents work at the same time
	me   func(ctx context.Context, k *kitchen) // what the person does meanwhile
}

var recipes = []recipe{
	{name: "pair.sh", args: []string{"parser", "the parser"}, out: "approved in round 2"},
	{name: "fanout.sh", args: []string{"names", "a name?"}, out: "Together: 3", wide: 3},
	{name: "pipeline.sh", args: []string{"cache", "a cache"}, out: "tested: built: the plan"},
	{name: "human.sh", args: []string{"1.4"}, out: "v1.4", me: sayYes},
	{name: "nightly.sh", args: []string{"monday", "jobs.txt", "600"}, wide: 2},
}

// checkMail compares all messages with testdata/cookbook/mail.txtar.
func (r *recipe) checkMail(k *kitchen, when string) {
	k.Helper()
	mail, err := txtar.ParseFile(filepath.Join("..", "..", "testdata", "cookbook", "mail.txtar"))
	must(k, err)
	at := slices.IndexFunc(mail.Files, func(f txtar.File) bool { return f.Name == r.name })
	got := strings.ReplaceAll(strings.Join(k.mail(), "\x00"), "\n", `\n`)
	want := strings.TrimSuffix(string(mail.Files[at].Data), "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\x00")); diff != "" {
		for _, agent := range []string{"alice", "bob", "carol"} {
			k.Log(k.Atm("watch", agent, "--since", "1h", "--no-follow", "--json"))
		}
		k.Fatalf("%s, mail: %s", when, diff)
	}
}

// jobs are the jobs of one night. The last line has no newline, as some editors leave it.
const jobs = "clean alice Clean up.\nlogs bob Read the logs.\ntests alice Mend the tests."

func sayYes(ctx context.Context, k *kitchen) { say(ctx, k, "yes") }

// say is a person who approves what bob asks for, and answers one message.
func say(ctx context.Context, k *kitchen, answer string) {
	for ctx.Err() == nil {
		k.Command("atm", "approve", "bob", "--as", "me").Run()
		out, _ := k.Command("atm", "ls", "me", "--json").Output()
		var list struct{ Messages []struct{ ID string } }
		if json.Unmarshal(out, &list) == nil && len(list.Messages) == 1 {
			k.Command("atm", "reply", list.Messages[0].ID, answer, "--as", "me", "--once", "yes").Run()
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// meanwhile runs the person of a recipe until the test ends.
func (r *recipe) meanwhile(k *kitchen) {
	if r.me == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.me(ctx, k) }()
	k.Cleanup(func() { stop(); <-done })
}

// fromAtm matches the lines of up, of which one may say "no prompt yet" on a slow machine, and of send.
var fromAtm = regexp.MustCompile(`^sent |^\w+: (ready|started|running)\b`)

func (s *script) last() (last string) {
	for line := range strings.Lines(s.out.String()) {
		if !fromAtm.MatchString(line) {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

// Each recipe does its work; a second run prints the same and sends nothing again; and nothing runs afterwards.
func TestCookbook(t *testing.T) {
	t.Parallel()
	for i, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			k := newKitchen(t)
			r.meanwhile(k)
			for n, shell := range []string{"sh", "bash"} {
				if (i+n)%2 == 1 { // each shell is the first of some
					shell = map[string]string{"sh": "bash", "bash": "sh"}[shell]
				}
				if code, last, all := k.cook(shell, r.name, r.args...); code != 0 || last != r.out {
					t.Fatalf("%s, run %d: exit %d, %q\n%s", shell, n+1, code, last, all)
				}
				r.checkMail(k, fmt.Sprintf("%s, run %d", shell, n+1))
			}
		})
	}
}

// A recipe may be interrupted anywhere: nothing keeps running, and further runs reach the same end without sending
// anything twice or losing anything. Here it is interrupted while the team starts, in each prompt and between them.
func TestCookbookInterrupted(t *testing.T) {
	t.Parallel()
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			k := newKitchen(t)
			k.Write("slow", "0.3")
			r.meanwhile(k)
			cut := func(n int, when string, is func() bool) (over bool) {
				s := k.start([]string{"sh", "bash"}[n/2%2], r.name, r.args...)
				gone := make(chan int, 1)
				go func() { gone <- s.ends() }()
				for end := time.Now().Add(mealTime); !is(); time.Sleep(20 * time.Millisecond) {
					select {
					case code := <-gone:
						if code != 0 || s.last() != r.out {
							t.Fatalf("exit %d, %q\n%s%s", code, s.last(), &s.out, &s.errs)
						}
						return true
					default:
					}
					if time.Now().After(end) {
						t.Fatalf("waited in vain for %s\n%s%s", when, &s.out, &s.errs)
					}
				}
				syscall.Kill(-s.Process.Pid, syscall.SIGINT) // as Ctrl-C does
				<-gone
				k.nothingRuns("after an interrupt " + when)
				return false
			}
			runs := func(agent string) func() bool {
				return func() bool {
					_, err := os.Stat(filepath.Join(k.Dir, ".atm", "main", agent, "run", "run.json"))
					return err == nil
				}
			}
			cut(0, "as soon as alice's program runs", runs("alice"))
			cut(1, "while the team starts", func() bool { return len(k.left()) > 3 })
			at := k.prompts() + 1
			over := cut(2, "at the first prompt", func() bool { return k.prompts() >= at })
			for n := 3; !over; n++ {
				if n > 15 {
					t.Fatal("it never comes to its end")
				}
				// The interrupted prompts are shown again and answered; the next ones are interrupted.
				at := k.prompts() + 1 + max(r.wide, 1)
				over = cut(n, fmt.Sprintf("at prompt %d", at), func() bool { return k.prompts() >= at })
			}
			k.nothingRuns("at the end")
			r.checkMail(k, "at the end")
		})
	}
}

// A night whose script alone is told to end leaves nothing running.
func TestCookbookEnded(t *testing.T) {
	t.Parallel()
	k := newKitchen(t)
	k.Write("slow", "60")
	s := k.start("sh", "nightly.sh", "monday", "jobs.txt", "600")
	if !within(mealTime, func() bool { return k.prompts() > 0 }) {
		t.Fatalf("no prompt\n%s%s", &s.out, &s.errs)
	}
	s.Process.Signal(syscall.SIGTERM)
	if code := s.ends(); code != 130 {
		t.Errorf("exit %d\n%s%s", code, &s.out, &s.errs)
	}
	k.nothingRuns("after its end")
}
