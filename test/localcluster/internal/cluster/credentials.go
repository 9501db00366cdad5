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

// proxyClient is the name of the API server as a client of aggregated API servers.
const proxyClient = "front-proxy-client"

const groupMasters = "system:masters"

// validity of certificates, longer than a cluster runs.
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
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name, Organization: []string{"localcluster"}},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return &authority{certificate, key}, nil
}

// pair is a certificate and its key in PEM.
type pair struct{ certificate, key []byte }

func (a *authority) pair() (pair, error) {
	key, err := keyPEM(a.key)
	return pair{certificatePEM(a.certificate.Raw), key}, err
}

// serving issues a certificate for a server.
func (a *authority) serving(name string, dns []string, ips ...net.IP) (pair, error) {
	return a.issue(name, &x509.Certificate{
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    dns,
		IPAddresses: ips,
	})
}

// client issues a certificate for a client.
func (a *authority) client(name string) (pair, error) {
	return a.issue(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// issue completes the template of a certificate and signs it.
func (a *authority) issue(name string, template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	template.SerialNumber = big.NewInt(2)
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	encoded, err := keyPEM(key)
	return pair{certificatePEM(der), encoded}, err
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// credentials are the tokens of the users and the certificates of the servers.
type credentials struct {
	dir    string
	ca     []byte
	tokens map[string]string
}

// Files of the credentials.
func (c *credentials) caFile() string            { return filepath.Join(c.dir, "ca.crt") }
func (c *credentials) servingCertFile() string   { return filepath.Join(c.dir, "serving.crt") }
func (c *credentials) servingKeyFile() string    { return filepath.Join(c.dir, "serving.key") }
func (c *credentials) serviceAccountKey() string { return filepath.Join(c.dir, "service-account.key") }
func (c *credentials) tokenFile() string         { return filepath.Join(c.dir, "tokens.csv") }
func (c *credentials) proxyCAFile() string       { return filepath.Join(c.dir, "front-proxy-ca.crt") }
func (c *credentials) proxyCertFile() string     { return filepath.Join(c.dir, "front-proxy.crt") }
func (c *credentials) proxyKeyFile() string      { return filepath.Join(c.dir, "front-proxy.key") }
func (c *credentials) kubeconfig(u string) string {
	return filepath.Join(c.dir, strings.ReplaceAll(u, ":", "-")+".kubeconfig")
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
	signing, err := signer.pair()
	if err != nil {
		return nil, err
	}

	proxyCA, err := newAuthority("front-proxy-ca")
	if err != nil {
		return nil, err
	}
	proxy, err := proxyCA.client(proxyClient)
	if err != nil {
		return nil, err
	}

	var table strings.Builder
	for user, group := range groups {
		token := rand.Text()
		c.tokens[user] = token
		fmt.Fprintf(&table, "%s,%s,%s,%q\n", token, user, user, group)
	}
	for path, content := range map[string][]byte{
		c.caFile():            c.ca,
		c.servingCertFile():   serving.certificate,
		c.servingKeyFile():    serving.key,
		c.serviceAccountKey(): signing.key,
		c.proxyCAFile():       certificatePEM(proxyCA.certificate.Raw),
		c.proxyCertFile():     proxy.certificate,
		c.proxyKeyFile():      proxy.key,
		c.tokenFile():         []byte(table.String()),
	} {
		if err := writeFile(path, content); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// writeKubeconfigs writes a kubeconfig for each user.
func (c *credentials) writeKubeconfigs(server string) error {
	for user := range c.tokens {
		if err := writeFile(c.kubeconfig(user), c.kubeconfigFor(user, server)); err != nil {
			return err
		}
	}
	return nil
}

func (c *credentials) kubeconfigFor(user, server string) []byte {
	return kube.Kubeconfig{Server: server, User: user, Token: c.tokens[user], CA: c.ca}.Encode()
}
