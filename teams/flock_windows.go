package teams

import "os"

const canInherit = false

// tryFlock: here a git that lost its atm is not known. Agents are not run here.
func tryFlock(*os.File) (held bool, err error) { return true, nil }
