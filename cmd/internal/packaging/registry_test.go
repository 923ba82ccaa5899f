package packaging

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the registries read of server.json, manifest.json and agent.json.
type (
	server struct {
		Schema                            string `json:"$schema"`
		Name, Title, Description, Version string
		Repository                        struct{ URL, Source string }
		Packages                          []mcpPackage
	}
	mcpPackage struct {
		RegistryType, Identifier, Version, FileSha256 string
		Transport                                     struct{ Type string }
	}
	manifest struct {
		ManifestVersion            string `json:"manifest_version"`
		Name, Version, Description string
		Author                     struct{ Name string }
		Server                     struct {
			Type       string
			EntryPoint string `json:"entry_point"`
			Config     struct {
				Command string
				Args    []string
				Env     map[string]string
			} `json:"mcp_config"`
		}
		Compatibility struct{ Platforms []string }
		UserConfig    map[string]struct {
			Type, Title, Description string
			Required                 bool
		} `json:"user_config"`
	}
	agent struct {
		ID, Name, Version, Description, Repository, License string
		Distribution                                        struct {
			Binary map[string]struct {
				Archive, SHA256, Cmd string
				Args                 []string
			}
		}
	}
)

// registryFiles are the files that WriteRegistryFiles has written.
func registryFiles(t *testing.T, dist, version string) (s server, a agent) {
	t.Helper()
	for name, to := range map[string]any{"server.json": &s, "agent.json": &a} {
		data, err := os.ReadFile(filepath.Join(dist, name))
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	isDownload := regexp.MustCompile(`^https://github\.com/agentteammail/atm/releases/download/v` + regexp.QuoteMeta(version) + `/atm_[^/]+$`).MatchString
	if !strings.HasPrefix(s.Schema, "https://static.modelcontextprotocol.io/schemas/") || s.Version != version ||
		!regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(s.Name) || s.Title == "" ||
		s.Description == "" || len(s.Description) > 100 || s.Repository.Source != "github" || s.Repository.URL != homepage {
		t.Errorf("the MCP registry is told %+v", s)
	}
	for _, p := range s.Packages {
		data, err := os.ReadFile(filepath.Join(dist, filepath.Base(p.Identifier)))
		if err != nil {
			t.Error(err)
		}
		if p.RegistryType != "mcpb" || p.Transport.Type != "stdio" || p.Version != version || p.FileSha256 != sum(data) ||
			!isDownload(p.Identifier) || !strings.Contains(p.Identifier, "mcp") {
			t.Errorf("of a package the MCP registry is told %+v", p)
		}
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(a.ID) || !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`).MatchString(a.Version) ||
		a.Version != version || a.Name == "" || a.Description == "" || a.License != "MIT" || a.Repository != homepage {
		t.Errorf("the ACP registry is told %+v", a)
	}
	for name, b := range a.Distribution.Binary {
		data, err := os.ReadFile(filepath.Join(dist, filepath.Base(b.Archive)))
		if err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`^(darwin|linux|windows)-(aarch64|x86_64)$`).MatchString(name) || b.SHA256 != sum(data) ||
			!isDownload(b.Archive) || !regexp.MustCompile(`\.(tar\.gz|zip)$`).MatchString(b.Archive) || b.Cmd == "" {
			t.Errorf("for %s the ACP registry is told %+v", name, b)
		}
	}
	icon, err := os.ReadFile(filepath.Join(dist, "icon.svg"))
	if err != nil || !bytes.Contains(icon, []byte(`width="16" height="16"`)) || !bytes.Contains(icon, []byte("currentColor")) {
		t.Errorf("the icon is not what the ACP registry wants: %s %v", icon, err)
	}
	return s, a
}

// openBundle unpacks a bundle and returns its manifest.
func openBundle(t *testing.T, bundle, dir string) (m manifest) {
	t.Helper()
	z, err := zip.OpenReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.ManifestVersion != "0.3" || m.Name == "" || m.Version == "" || m.Description == "" || m.Author.Name == "" ||
		m.Server.Type != "binary" || m.Server.Config.Command != "${__dirname}/"+m.Server.EntryPoint || len(m.Compatibility.Platforms) != 1 {
		t.Errorf("the manifest says %+v", m)
	}
	if info, err := os.Stat(filepath.Join(dir, m.Server.EntryPoint)); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%s cannot be started: %v", m.Server.EntryPoint, err)
	}
	for name, c := range m.UserConfig {
		if c.Type == "" || c.Title == "" || c.Description == "" {
			t.Errorf("of %s people are told %+v", name, c)
		}
	}
	return m
}

func TestRegistryFiles(t *testing.T) {
	const version = "1.2.3"
	dist := t.TempDir()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, p := range platforms {
		if p.os == "windows" && p.arch == "arm64" {
			continue // a release need not have all
		}
		var archive bytes.Buffer
		names := []string{"LICENSE", p.program("atm"), p.program("atm-more"), p.program("atm-runner")}
		if p.format == "zip" {
			z := zip.NewWriter(&archive)
			for _, name := range names {
				w, err := z.CreateHeader(&zip.FileHeader{Name: "atm/" + name, Modified: at})
				if err != nil {
					t.Fatal(err)
				}
				w.Write([]byte(name))
			}
			z.Close()
		} else {
			zipped := gzip.NewWriter(&archive)
			w := tar.NewWriter(zipped)
			for _, name := range names {
				if err := w.WriteHeader(&tar.Header{Name: "atm/" + name, Mode: 0o755, Size: int64(len(name)), ModTime: at}); err != nil {
					t.Fatal(err)
				}
				w.Write([]byte(name))
			}
			w.Close()
			zipped.Close()
		}
		if err := os.WriteFile(filepath.Join(dist, "atm_"+version+"_"+p.os+"_"+p.arch+"."+p.format), archive.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteRegistryFiles(dist, version); err != nil {
		t.Fatal(err)
	}
	s, a := registryFiles(t, dist, version)
	if len(s.Packages) != 5 || len(a.Distribution.Binary) != 5 {
		t.Errorf("of 5 archives the registries are told %+v, %+v", s.Packages, a.Distribution.Binary)
	}
	dir := t.TempDir()
	m := openBundle(t, filepath.Join(dist, "atm_1.2.3_windows_amd64.mcpb"), dir)
	if m.Server.EntryPoint != "server/atm-more.exe" || !slices.Equal(m.Compatibility.Platforms, []string{"win32"}) {
		t.Errorf("for Windows the manifest says %+v", m)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "server/atm.exe")); string(data) != "atm.exe" {
		t.Errorf("the program is %q", data)
	}

	os.Remove(filepath.Join(dist, "atm_1.2.3_linux_amd64.tar.gz"))
	if err := os.WriteFile(filepath.Join(dist, "atm_1.2.3_linux_amd64.tar.gz"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteRegistryFiles(dist, version); err == nil || !strings.Contains(err.Error(), "atm_1.2.3_linux_amd64") {
		t.Errorf("an empty archive: %v", err)
	}
	if err := WriteRegistryFiles(dist, "1.2.4"); err == nil {
		t.Error("the files of another version were written")
	}
}

// registries returns the files for the registries, and checks that they were published, if the release has them.
func (r *release) registries() (server, agent) {
	r.Helper()
	before, _ := os.ReadFile(filepath.Join(r.dist, "server.json")) // names the bundles' sums
	if err := WriteRegistryFiles(r.dist, r.Version); err != nil {
		r.Fatal(err)
	}
	s, a := registryFiles(r.T, r.dist, r.Version)
	if after, _ := os.ReadFile(filepath.Join(r.dist, "server.json")); before != nil && !bytes.Equal(before, after) {
		r.Errorf("made again, server.json is another one: %s, %s", before, after)
	}
	return s, a
}

// TestMCPBundle does what a client does with a bundle: it asks for the values of the manifest, and starts the server anywhere.
func TestMCPBundle(t *testing.T) {
	r := openRelease(t)
	s, _ := r.registries()
	root := r.tree("server/atm")
	i := slices.IndexFunc(s.Packages, func(p mcpPackage) bool {
		return strings.HasSuffix(p.Identifier, "_"+runtime.GOOS+"_"+runtime.GOARCH+".mcpb")
	})
	if i < 0 {
		t.Fatalf("there is none for this machine: %+v", s.Packages)
	}
	m := openBundle(t, filepath.Join(r.dist, filepath.Base(s.Packages[i].Identifier)), root.dir)
	root.atm("init", "bob", "me")
	root.atm("send", "bob", "hello")
	value := strings.NewReplacer("${__dirname}", root.dir, "${user_config.project}", root.home, "${user_config.agent}", "bob").Replace
	cmd := exec.Command(value(m.Server.Config.Command), m.Server.Config.Args...)
	cmd.Dir, cmd.Stderr, cmd.Env = t.TempDir(), os.Stderr, root.env()
	for name, v := range m.Server.Config.Env {
		cmd.Env = append(cmd.Env, name+"="+value(v))
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.InitializeResult().ServerInfo; got.Name != "atm" || got.Version != "v"+r.Version {
		t.Errorf("the server is %+v", got)
	}
	got, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "read", Arguments: map[string]any{}})
	if err != nil || got.IsError || !strings.Contains(got.Content[0].(*sdk.TextContent).Text, "hello") {
		data, _ := json.Marshal(got)
		t.Errorf("bob reads %s: %v", data, err)
	}
}

// TestACPEntry does what the ACP registry does with an entry, in an empty directory, and then what an editor does.
func TestACPEntry(t *testing.T) {
	r := openRelease(t)
	_, a := r.registries()
	entry := a.Distribution.Binary[runtime.GOOS+"-"+machine()]
	root := r.tree(entry.Cmd)
	root.unpack()
	cmd := exec.Command(root.link, entry.Args...)
	cmd.Dir, cmd.Stderr, cmd.Env = t.TempDir(), os.Stderr, root.env()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	c := acp.NewClientSideConnection(nil, in, out)
	got, err := c.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	if err != nil || len(got.AuthMethods) == 0 || got.AuthMethods[0].Agent == nil || got.AgentInfo.Version != "v"+r.Version {
		t.Fatalf("initialize is answered with %+v: %v", got, err)
	}
	root.atm("init", "lead", "me")
	session, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: root.home, McpServers: []acp.McpServer{}})
	if err != nil || session.SessionId == "" {
		t.Errorf("session/new is answered with %+v: %v", session, err)
	}
}
