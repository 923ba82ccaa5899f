// Package packaging makes what registries of others want of a release. Its tests install what a release brings, use it, and
// remove it: make dist-test.
package packaging

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	homepage    = "https://github.com/agentteammail/atm"
	description = "Mail between your coding agents, and between them and you"
)

//go:embed icon.svg
var icon []byte

// A platform is what one archive of a release is for.
type platform struct{ os, arch, format string }

var platforms = []platform{
	{"darwin", "amd64", "tar.gz"}, {"darwin", "arm64", "tar.gz"},
	{"linux", "amd64", "tar.gz"}, {"linux", "arm64", "tar.gz"},
	{"windows", "amd64", "zip"}, {"windows", "arm64", "zip"},
}

type object map[string]any

// WriteRegistryFiles writes, beside the archives of a release in dist, what registries of others want of it:
//
//	atm_VERSION_OS_ARCH.mcpb   the MCP server with its manifest, for each archive
//	server.json                names them for the MCP registry
//	agent.json, icon.svg       name the archives for the ACP registry
//
// All of it depends on the archives only, so it is the same whenever they are.
//
// Sources: schema 2025-12-11 of https://github.com/modelcontextprotocol/registry, MANIFEST.md (0.3) of
// https://github.com/modelcontextprotocol/mcpb, agent.schema.json of https://github.com/agentclientprotocol/registry.
func WriteRegistryFiles(dist, version string) error {
	var packages []object
	binary := object{}
	for _, p := range platforms {
		name := fmt.Sprintf("atm_%s_%s_%s", version, p.os, p.arch)
		archive, err := os.ReadFile(filepath.Join(dist, name+"."+p.format))
		if errors.Is(err, os.ErrNotExist) {
			continue // dist was made for fewer
		}
		if err != nil {
			return err
		}
		bundle, err := mcpBundle(archive, p, version)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dist, name+".mcpb"), bundle, 0o644); err != nil {
			return err
		}
		download := homepage + "/releases/download/v" + version + "/" + name
		packages = append(packages, object{
			"registryType": "mcpb", "identifier": download + ".mcpb", "version": version, "fileSha256": sum(bundle),
			"transport": object{"type": "stdio"},
		})
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch]
		binary[p.os+"-"+machine] = object{
			"archive": download + "." + p.format, "sha256": sum(archive), "cmd": "./atm/" + p.program("atm"), "args": []string{"acp"},
		}
	}
	if packages == nil {
		return fmt.Errorf("%s has no archive of version %s", dist, version)
	}
	server := object{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    "io.github.agentteammail/atm", "title": "atm", "description": description, "version": version,
		"repository": object{"url": homepage, "source": "github"}, "packages": packages,
	}
	agent := object{
		"id": "atm", "name": "atm", "version": version, "description": description, "repository": homepage, "license": "MIT",
		"authors": []string{"The atm authors"}, "distribution": object{"binary": binary},
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dist, "server.json"), text(server), 0o644),
		os.WriteFile(filepath.Join(dist, "agent.json"), text(agent), 0o644),
		os.WriteFile(filepath.Join(dist, "icon.svg"), icon, 0o644),
	)
}

func (p platform) program(name string) string {
	if p.os == "windows" {
		name += ".exe"
	}
	return name
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func text(o object) []byte {
	data, _ := json.MarshalIndent(o, "", "  ") // strings, lists and objects never fail
	return append(data, '\n')
}

// mcpBundle returns a zip of a manifest, the MCP server and the atm that it runs. Whoever installs it is asked for the
// project and for a name, since the client may start it anywhere.
func mcpBundle(archive []byte, p platform, version string) ([]byte, error) {
	server := "server/" + p.program("atm-more")
	manifest := object{
		"manifest_version": "0.3", "name": "atm", "version": version, "description": description,
		"author":     object{"name": "The atm authors", "url": homepage},
		"repository": object{"type": "git", "url": homepage}, "homepage": homepage, "license": "MIT",
		"server": object{"type": "binary", "entry_point": server, "mcp_config": object{
			"command": "${__dirname}/" + server, "args": []string{"mcp"},
			"env": object{"ATM_ROOT": "${user_config.project}/.atm", "ATM_AGENT": "${user_config.agent}"},
		}},
		"tools_generated": true,
		"compatibility":   object{"platforms": []string{cmp.Or(map[string]string{"windows": "win32"}[p.os], p.os)}},
		"user_config": object{
			"project": object{"type": "directory", "title": "Project", "description": "The project whose team this is: where you ran atm init", "required": true},
			"agent":   object{"type": "string", "title": "Name", "description": "The member of the team whose mail this is", "required": true},
		},
	}
	files, at, err := unpack(archive, p, "LICENSE", p.program("atm"), p.program("atm-more"))
	if err != nil {
		return nil, err
	}
	files["manifest.json"] = text(manifest)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range []string{"manifest.json", "LICENSE", p.program("atm"), p.program("atm-more")} {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		h.SetMode(0o644)
		if strings.HasPrefix(name, "atm") {
			h.Name = "server/" + name
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err = z.Close()
	return out.Bytes(), err
}

// unpack returns files of an archive by their names, and the time of the last.
func unpack(archive []byte, p platform, names ...string) (files map[string][]byte, at time.Time, err error) {
	files = map[string][]byte{}
	keep := func(name string, time time.Time, r io.Reader) error {
		if name = path.Base(name); !slices.Contains(names, name) {
			return nil
		}
		data, err := io.ReadAll(r)
		files[name], at = data, time.UTC()
		return err
	}
	if p.format == "zip" {
		err = eachInZip(archive, keep)
	} else {
		err = eachInTar(archive, keep)
	}
	if err == nil && len(files) != len(names) {
		err = fmt.Errorf("it has not all of %q", names)
	}
	return files, at, err
}

func eachInZip(archive []byte, do func(string, time.Time, io.Reader) error) error {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return err
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err == nil {
			err = do(f.Name, f.Modified, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachInTar(archive []byte, do func(string, time.Time, io.Reader) error) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	for t := tar.NewReader(unzipped); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(h.Name, h.ModTime, t)
		}
		if err != nil {
			return err
		}
	}
}
