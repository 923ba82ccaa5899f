package control

// peerPID: the structure that golang.org/x/sys has does not show it.
func peerPID(int) int { return 0 }
