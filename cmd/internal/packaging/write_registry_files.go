//go:build ignore

// The files for the registries, beside the archives of a release: go run write_registry_files.go DIST VERSION
package main

import (
	"log"
	"os"

	"github.com/agentteammail/atm/cmd/internal/packaging"
)

func main() {
	if err := packaging.WriteRegistryFiles(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
