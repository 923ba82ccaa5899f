package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

const conversationHelp = `/approve [OPTION]    /reject [why]    answer what the agent asks
/approve DRAFT    /reject DRAFT [why]    answer a draft; atm pending lists them
/pause    /resume    /complete    /abort    the session
/quit     leave; it goes on. Anything else that begins with / is doubled: //text`

// handle does what a line that was typed says, and reports whether that is to
// leave. Whatever goes wrong is said, and the conversation goes on.
func (c *conversation) handle(ctx context.Context, text string) (leave bool) {
	if strings.TrimSpace(text) == "" {
		return false
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	var err error
	switch {
	case c.foot == nil || !strings.HasPrefix(text, "/"):
		err = c.send(ctx, wire.HumanInput{Kind: "message", Text: text})
	case strings.HasPrefix(text, "//"):
		err = c.send(ctx, wire.HumanInput{Kind: "message", Text: text[1:]})
	case word == "/quit" || word == "/exit" || word == "/detach":
		return true
	case word == "/help":
		c.line(conversationHelp)
	case word == "/approve", word == "/reject":
		err = c.answerHere(ctx, strings.TrimSpace(rest), word == "/reject")
	case word == "/pause":
		err = c.move(ctx, wire.SessionPaused)
	case word == "/resume":
		err = c.move(ctx, wire.SessionActive)
	case word == "/complete":
		err = c.move(ctx, wire.SessionCompleted)
	case word == "/abort":
		if err = c.mayAct("abort", c.box.Agent()); err == nil {
			err = c.send(ctx, wire.HumanInput{Kind: "abort"})
		}
	default:
		err = fmt.Errorf("no %s: /help lists what there is; //%s says it to the agent", word, strings.TrimPrefix(text, "/"))
	}
	if err != nil {
		c.note("%v", c.explain(explainSession(err)))
	}
	return false
}

func (c *conversation) send(ctx context.Context, in wire.HumanInput) error {
	if c.readOnly {
		return errors.New("read only: nothing is sent")
	}
	if in.Kind == "message" {
		if err := cmdline.CheckText(in.Text); err != nil {
			return err
		}
	}
	out, err := c.team.Say(ctx, c.id, c.saying(in))
	if err != nil {
		return err
	}
	if out.Unlogged != nil {
		c.note("sent; the log could not be written: %v", out.Unlogged)
	}
	return nil
}

func (c *conversation) move(ctx context.Context, to wire.InteractiveSessionState) error {
	if c.readOnly {
		return errors.New("read only: nothing is changed")
	}
	if err := c.mayAct("change the session of", c.box.Agent()); err != nil {
		return err
	}
	_, err := c.team.Sessions().Change(ctx, c.id, func(s *session.Session) error { return s.Move(to, c.by(), time.Now()) })
	return err
}

// answerHere answers a draft, or what the agent of this conversation asks.
func (c *conversation) answerHere(ctx context.Context, rest string, deny bool) error {
	if c.readOnly {
		return errors.New("read only: nothing is answered")
	}
	list, err := c.team.Waiting(ctx)
	word, text, _ := strings.Cut(rest, " ")
	q, found := teams.FindWaiting(list, word)
	if found != nil || q.Kind != teams.KindDraft {
		asked := slices.IndexFunc(list, func(q policy.Question) bool { return q.Agent == c.box.Agent() && q.Kind != teams.KindDraft })
		_, noID := wire.ParseFragment(word)
		switch {
		case found == nil && q.Agent != c.box.Agent():
			return fmt.Errorf("%s asks that: atm approve %s", q.Agent, q.Short())
		case found != nil && noID == nil:
			return found // an id that is mistyped or has its answer, and no word of a reason
		case asked >= 0:
			q, text = list[asked], rest
		case err != nil:
			return err
		case word == "":
			return fmt.Errorf("%s asks nothing now; of a draft four digits of its id are enough", c.box.Agent())
		default:
			return found
		}
	}
	who, inAgent := c.actor()
	if err := c.mayAnswer(q.Agent, who, inAgent); err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	if q.Kind == teams.KindDraft {
		_, err = c.answerDraft(ctx, q, deny, text, nil)
		return err
	}
	option, reason := text, ""
	if deny {
		option, reason = "", text
	}
	o, err := c.decide(ctx, q, who, deny, option, reason)
	if err == nil {
		c.note("%s (%s)", o.Done, o.Detail)
	}
	return err
}
