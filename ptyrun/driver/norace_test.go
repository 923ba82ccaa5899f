//go:build !race

package driver

const stride = 1
