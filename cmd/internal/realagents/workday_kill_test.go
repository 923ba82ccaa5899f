//go:build linux

package realagents

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/driver"
)

// disturb kills and restarts one thing after the other. In the middle there is a new version.
func (d *workday) disturb(r *rand.Rand, upgrade func() error) {
	kinds := map[string]func(person, runner string){
		"runners killed": func(_, agent string) {
			if pid := d.runner(agent); pid > 1 {
				d.are("", agent)
				syscall.Kill(pid, syscall.SIGKILL)
				time.Sleep(time.Duration(r.IntN(3)) * time.Second)
				d.up(agent)
			}
		},
		"programs of a person killed": func(agent, _ string) {
			d.are("", agent)
			d.open[agent].kill()
			d.are("off", agent)
			time.Sleep(time.Duration(r.IntN(15)) * time.Second)
			d.openWindow(agent)
		},
		"hooks killed": func(string, string) {
			for end, n := time.Now().Add(10*time.Second), 0; n < 3 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				for pid, command := range ourProcesses() {
					if strings.Contains(command, "atm hook") && syscall.Kill(pid, syscall.SIGKILL) == nil {
						d.add("hooks killed, each")
						n++
					}
				}
			}
		},
		"restarts": func(_, agent string) {
			d.are("", agent)
			if out, code := d.try("restart", agent); code != 0 && !strings.Contains(out, "no prompt yet") {
				d.fault("restart %s: exit %d, %s", agent, code, out)
			}
			d.are("", agent)
		},
		"down and up": func(string, string) {
			d.are("", byRunner...)
			if out, code := d.try("down"); code != 0 {
				d.fault("down: exit %d, %s", code, out)
			}
			d.are("off", byRunner...)
			time.Sleep(time.Duration(r.IntN(15)) * time.Second)
			d.up(byRunner...)
		},
		"backups": func(string, string) {
			path := filepath.Join(d.kit.dir, "backup.tar")
			if out, code := d.try("backup", path); code != 0 {
				d.fault("backup: exit %d, %s", code, out)
			}
			os.Remove(path)
		},
		"prompts of a person": func(agent, _ string) {
			if reading, _ := d.open[agent].now(); reading.Dialog == nil && reading.Prompt {
				d.submit(d.open[agent], d.newToken()+" hello")
			}
		},
	}
	for name := range helperArgs {
		kinds[name+" killed"] = func(string, string) {
			d.beside[name].end(syscall.SIGKILL)
			d.startBeside(name)
		}
	}
	names := slices.Sorted(maps.Keys(kinds))
	for isUpgraded := false; ; {
		for _, i := range r.Perm(len(names)) {
			now := time.Since(d.began).Round(time.Second)
			if now > d.lasts {
				return
			}
			if !isUpgraded && now > d.lasts/2 {
				isUpgraded = true
				err := upgrade()
				if out, _ := d.try("version"); err != nil || !strings.Contains(out, "v9.9.9") {
					d.fault("the new version: %v, %s", err, out)
				}
				d.t.Logf("%s a new version", now)
			}
			d.t.Logf("%s %s", now, names[i])
			d.add(names[i])
			kinds[names[i]](byPerson[r.IntN(len(byPerson))], byRunner[r.IntN(len(byRunner))])
			d.endLimits()
			time.Sleep(time.Duration(r.Int64N(int64(d.lasts / 60)))) // on a longer day all live longer, and may grow
		}
	}
}

// are says what agents do from now on, by what was done to them.
func (d *workday) are(what string, agents ...string) {
	for _, agent := range agents {
		d.listeners[agent].is(what)
	}
}

// runner is the process that runs an agent.
func (d *workday) runner(agent string) int {
	var pids struct{ Runner int }
	data, _ := os.ReadFile(filepath.Join(d.dir, ".atm", "main", agent, "run", "run.json"))
	json.Unmarshal(data, &pids)
	return pids.Runner
}

// up starts agents.
func (d *workday) up(agents ...string) {
	d.are("", agents...)
	if out, code := d.try(append([]string{"up"}, agents...)...); code != 0 {
		d.t.Logf("up %s: exit %d\n%s", agents, code, out)
		d.add("up: exit " + strconv.Itoa(code))
	}
}

// submit types a prompt at a program's keyboard.
func (d *workday) submit(w *window, text string) {
	w.Write([]byte(text), time.Second)
	time.Sleep(driver.SubmitDelay(len(text)))
	w.Write([]byte("\r"), time.Second)
}

// endLimits has the person go on where a limit is reached: the first prompt that is answered ends it.
func (d *workday) endLimits() {
	for _, agent := range []string{"cla", "clr"} {
		if !strings.Contains(d.stateNow(agent), "limited") {
			continue
		}
		d.add("limits ended")
		if agent == "cla" {
			d.submit(d.open[agent], d.newToken()+" go on")
		} else {
			d.try("type", agent, d.newToken()+" go on", "--enter")
		}
	}
}

func (d *workday) stateNow(agent string) string {
	out, _ := d.try("status", agent, "--json")
	var status struct{ State string }
	json.Unmarshal([]byte(out), &status)
	return status.State
}
