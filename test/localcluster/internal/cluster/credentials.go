package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// The users of a cluster. Each part has its own user, so that the audit log distinguishes their
// writes.
const (
	userAdmin             = "admin"
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	userKwok              = "kwok"
)

const groupMasters = "system:masters"

// validity of serving certificates, longer than a cluster runs.
const validity = 365 * 24 * time.Hour

// authority signs the certificates of one cluster. It uses elliptic curve keys, because generating
// RSA keys would slow down the start.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{
		CommonName: name, Organization: []string{"localcluster"}, NotBefore: time.Now().Add(-time.Hour),
	}, key)
	return &authority{certificate, key}, err
}

// pair is a certificate and its key in PEM.
type pair struct{ certificate, key []byte }

// serving issues a certificate for a server.
func (a *authority) serving(name string, dns []string, ips ...net.IP) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     dns,
		IPAddresses:  ips,
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	return pair{certificatePEM(der), encoded}, err
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// credentials are the tokens of the users and the certificates of the servers.
type credentials struct {
	dir    string
	ca     []byte
	tokens map[string]string
}

func (c *credentials) file(name string) string { return filepath.Join(c.dir, name) }

func (c *credentials) kubeconfig(u string) string {
	return c.file(strings.ReplaceAll(u, ":", "-") + ".kubeconfig")
}

// newCredentials creates certificates, keys and tokens in dir. groups contains the groups of each
// user.
func newCredentials(dir string, groups map[string]string) (*credentials, error) {
	c := &credentials{dir: dir, tokens: map[string]string{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ca, err := newAuthority("localcluster-ca")
	if err != nil {
		return nil, err
	}
	c.ca = certificatePEM(ca.certificate.Raw)
	serving, err := ca.serving("localhost", []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}, net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, err
	}
	signer, err := newAuthority("service-accounts")
	if err != nil {
		return nil, err
	}
	signing, err := keyutil.MarshalPrivateKeyToPEM(signer.key)
	if err != nil {
		return nil, err
	}

	var table strings.Builder
	for user, group := range groups {
		token := rand.Text()
		c.tokens[user] = token
		fmt.Fprintf(&table, "%s,%s,%s,%q\n", token, user, user, group)
	}
	for name, content := range map[string][]byte{
		"ca.crt":              c.ca,
		"serving.crt":         serving.certificate,
		"serving.key":         serving.key,
		"service-account.key": signing,
		"tokens.csv":          []byte(table.String()),
	} {
		if err := writeFile(c.file(name), content); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// writeKubeconfigs writes a kubeconfig for each user.
func (c *credentials) writeKubeconfigs(server string) error {
	for user := range c.tokens {
		if err := c.writeKubeconfig(c.kubeconfig(user), user, server); err != nil {
			return err
		}
	}
	return nil
}

func (c *credentials) writeKubeconfig(path, user, server string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"localcluster": {Server: server, CertificateAuthorityData: c.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Token: c.tokens[user]}},
		Contexts:       map[string]*clientcmdapi.Context{"localcluster": {Cluster: "localcluster", AuthInfo: user}},
		CurrentContext: "localcluster",
	}, path)
}

// admin returns a client of the administrator.
func (c *credentials) admin(server string) (*kube.Client, error) {
	return kube.New(&rest.Config{Host: server, BearerToken: c.tokens[userAdmin], TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}})
}
