package kube

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

// Kubeconfig has the contents of a kubeconfig for one user of one cluster.
type Kubeconfig struct {
	Server, User, Token string
	// CA is the CA certificate in PEM.
	CA []byte
}

// The three keys that FromKubeconfig looks for.
const (
	keyServer = "server: "
	keyCA     = "certificate-authority-data: "
	keyToken  = "token: "
)

// Encode writes the kubeconfig.
func (k Kubeconfig) Encode() []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: localcluster
  cluster:
    `+keyServer+`%s
    `+keyCA+`%s
users:
- name: %[3]q
  user:
    `+keyToken+`%s
contexts:
- name: localcluster
  context:
    cluster: localcluster
    user: %[3]q
current-context: localcluster
`, k.Server, base64.StdEncoding.EncodeToString(k.CA), k.User, k.Token)
}

// FromKubeconfig returns the client of a kubeconfig that Encode wrote, with one key per line. Other
// kubeconfigs would need a YAML parser.
func FromKubeconfig(path string) (*Client, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		for _, key := range []string{keyServer, keyCA, keyToken} {
			if value, is := strings.CutPrefix(line, key); is {
				found[key] = value
			}
		}
	}
	if len(found) != 3 {
		return nil, fmt.Errorf("kubeconfig %s: must be one written by localcluster, with server, authority and token", path)
	}
	ca, err := base64.StdEncoding.DecodeString(found[keyCA])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: authority: %w", path, err)
	}
	return New(found[keyServer], found[keyToken], ca), nil
}
