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
	a := &authority{}
	key, der, err := a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name, Organization: []string{"localcluster"}},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	})
	if err != nil {
		return nil, err
	}
	a.key = key
	a.certificate, err = x509.ParseCertificate(der)
	return a, err
}

// sign completes a certificate and signs it for a new key. An authority without a certificate signs its own.
func (a *authority) sign(template *x509.Certificate) (key *ecdsa.PrivateKey, der []byte, err error) {
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber = big.NewInt(2)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	parent, signer := a.certificate, a.key
	if parent == nil {
		template.SerialNumber = big.NewInt(1)
		parent, signer = template, key
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer); err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	return key, der, nil
}

// pair is a certificate and its key in PEM.
type pair struct{ certificate, key []byte }

// serving issues a certificate for a server.
func (a *authority) serving(name string, dns []string, ips ...net.IP) (pair, error) {
	key, der, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    dns,
		IPAddresses: ips,
	})
	if err != nil {
		return pair{}, err
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
	signing, err := keyPEM(signer.key)
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
		if err := writeFile(c.kubeconfig(user), c.kubeconfigFor(user, server)); err != nil {
			return err
		}
	}
	return nil
}

func (c *credentials) kubeconfigFor(user, server string) []byte {
	return kube.Kubeconfig{Server: server, User: user, Token: c.tokens[user], CA: c.ca}.Encode()
}
