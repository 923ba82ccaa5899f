package agents

// ReplyWay is how a text reaches the model.
type ReplyWay int

// The ways of a reply.
const (
	NoReply   ReplyWay = iota
	AsContext          // as additional context for the model
	AsBlock            // as the reason why the model may not stop
	OnStderr           // likewise, on stderr with exit code 2
	AsPush             // for a plugin that pushes it
)

// Prefix begins every text of atm's.
const Prefix = "[atm]"

// A Document is an answer in the form that most programs read.
type Document struct {
	Message  string `json:"systemMessage,omitempty"` // for the person
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Output   struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext,omitempty"`
		Permit  string `json:"permissionDecision,omitempty"`
		Why     string `json:"permissionDecisionReason,omitempty"`
	} `json:"hookSpecificOutput,omitzero"`
}

// Document returns the answer with a text, or the call's refusal.
func (c *Call) Document(text string) *Document {
	d := &Document{Message: c.Warning}
	switch {
	case c.Refusal != "":
		d.Output.Event, d.Output.Permit, d.Output.Why = c.Kind, "deny", c.Refusal
	case text == "": // it stays {}
	case c.ReplyAs == AsBlock:
		d.Decision, d.Reason = "block", text
	default:
		d.Output.Event, d.Output.Context = c.Kind, text
	}
	return d
}
