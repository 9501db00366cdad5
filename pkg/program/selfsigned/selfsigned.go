// Package selfsigned makes self-signed certificates, for endpoints whose clients know the certificate or do not check
// it.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	// ValidFor is the validity of a certificate.
	ValidFor = 365 * 24 * time.Hour
	// RenewBefore is how long before its expiry a certificate is replaced.
	RenewBefore = 30 * 24 * time.Hour
)

// Pair is a certificate and its private key.
type Pair struct {
	// Certificate and Key are in PEM format. The certificate is its own CA certificate.
	Certificate, Key []byte
}

// Make returns a certificate for the DNS names that is valid from an hour before now.
func Make(names []string, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generating a key for %s: %w", names[0], err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("generating a serial number for %s: %w", names[0], err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(ValidFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Pair{}, fmt.Errorf("generating a certificate for %s: %w", names[0], err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key for %s: %w", names[0], err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// Load returns the pair for a server, with its certificate parsed in Leaf.
func (p Pair) Load() (*tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, err
	}
	return &loaded, nil
}
