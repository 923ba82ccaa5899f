//go:build race

package driver

// stride is the number of bytes of a recording between two readings. The race detector is ten times slower and finds
// nothing in pure functions, so the tests read less often with it.
const stride = 41
