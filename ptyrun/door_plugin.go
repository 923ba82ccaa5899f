package ptyrun

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/ptyrun/control"
	ways "github.com/agentteammail/atm/ptyrun/driver/agents"
)

// plugin is atm's plugin in a program, as far as it has asked for mail through the runner's socket. One that has not since
// the program started is not there. It asks when this file changes:
//
//	<agent>/run/push/wanted
type plugin struct {
	mu       sync.Mutex
	hasAsked bool
	text     string // that is pushed
	stage    pushStage
	shown    chan struct{} // gets something when the model has it
}

type pushStage int

const (
	pushNone   pushStage = iota
	pushWanted           // the plugin shall take it
	pushTaken            // it has
	pushShown            // the model has it
)

const pushDir, pushFile = "/run/push", "/wanted"

func (l *plugin) stageNow() pushStage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stage
}

// pluginDoor is the way through a plugin.
type pluginDoor struct {
	*plugin
	box *maildir.Box
}

func (d *pluginDoor) by() string { return ways.Plugin }

func (d *pluginDoor) isVerbatim() bool { return true } // TestMailIsDataByPlugin tries that

func (d *pluginDoor) isReceived() bool { return d.stageNow() == pushShown }

func (d *pluginDoor) look(context.Context, []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hasAsked {
		return errors.New("no plugin of atm's has asked for mail")
	}
	return nil
}

// push returns when the model has the text or that takes long, or with an error if the plugin has not taken it.
func (d *pluginDoor) push(ctx context.Context, out pushText) error {
	shown := d.want(out.text)
	file, word := string(d.box.Agent())+pushDir+pushFile, string(out.id)+"\n"
	if err := d.box.Store().Dir().Replace(file, []byte(word), false); err != nil && d.takeBack() {
		return err
	}
	select {
	case <-shown:
	case <-ctx.Done():
	}
	if d.takeBack() {
		return errors.New("the plugin did not ask for it")
	}
	return nil
}

func (d *pluginDoor) want(text string) (shown <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text, d.stage, d.shown = text, pushWanted, make(chan struct{}, 1)
	return d.shown
}

// takeBack reports whether the plugin has not taken the text, and cannot any more.
func (d *pluginDoor) takeBack() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stage != pushWanted {
		return false
	}
	d.stage = pushNone
	return true
}

// answer answers the plugin.
func (l *plugin) answer(req control.PluginRequest) (a control.PluginMail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	frame, _, _ := strings.Cut(l.text, "\n")
	switch {
	case l.stage == pushTaken && strings.Contains(req.Shown, frame):
		l.stage = pushShown
		l.shown <- struct{}{}
	case l.stage == pushWanted && req.Takes:
		l.stage, a.Text = pushTaken, l.text
	}
	l.hasAsked, a.Waiting = true, l.stage == pushWanted
	return a
}

// mailForPlugin answers the plugin. With its first call the door is open.
func (p *terminal) mailForPlugin(req control.PluginRequest) control.PluginMail {
	box := p.r.Box
	if box.Store().Dir().Mkdir(string(box.Agent())+pushDir) != nil {
		return control.PluginMail{}
	}
	if p.door.shut != nil && p.plugin.stageNow() == pushNone {
		p.door.lookedAt = time.Time{}
	}
	answer := p.plugin.answer(req)
	answer.Watch = box.Path() + pushDir
	return answer
}
