//go:build race

package driver

// stride is how many bytes of a recording come between two looks; under the
// race detector, ten times slower and with nothing to find in a pure function,
// not each one is looked at.
const stride = 41
