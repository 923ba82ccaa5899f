//go:build !linux

package teams

func remoteFS(string) string { return "" }
