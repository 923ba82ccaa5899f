package policy

// Unasked are the verbs of atm that an agent may run without being asked, as `atm install` sets it up: its mail, its
// claims, and looking around. Typed first on the command line, they open files of the agent's own project only. Of "team" only
// looking is allowed.
var Unasked = []string{"send", "read", "reply", "ack", "ls", "show", "wait", "team", "trace", "claim", "where", "primer"}
