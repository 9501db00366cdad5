package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// selfSignedFor is the validity of a self-signed certificate.
	selfSignedFor = 365 * 24 * time.Hour
	// renewBefore is how long before its expiry a self-signed certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
)

// certificates returns the certificate for a new connection.
type certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// newCertificate returns the certificate of the configured files, or a self-signed one if no
// files are configured.
func newCertificate(ctx context.Context, o metricsOptions, name, namespace string) (certificates, error) {
	if o.certFile == "" {
		made := &selfSigned{names: []string{name + "." + namespace + ".svc", name, "localhost"}, now: time.Now}
		_, err := made.get(nil)
		return made.get, err
	}
	read := &certificateFiles{logger: klog.FromContext(ctx), cert: o.certFile, key: o.keyFile}
	_, err := read.get(nil)
	return read.get, err
}

// certificateFiles are reloaded when one of them has changed. While they are unusable, for
// example between the writes of the two files, the previous certificate stays in force.
type certificateFiles struct {
	logger    klog.Logger
	cert, key string

	mu      sync.Mutex
	stamp   string
	current *tls.Certificate
}

func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamp := stampOf(f.cert) + stampOf(f.key)
	if f.current != nil && stamp == f.stamp {
		return f.current, nil
	}
	read, err := tls.LoadX509KeyPair(f.cert, f.key)
	switch {
	case err == nil:
		f.current, f.stamp = &read, stamp
	case f.current == nil:
		return nil, fmt.Errorf("loading the certificate (--%s=%s, --%s=%s): %w", flagCertFile, f.cert, flagKeyFile, f.key, err)
	default:
		f.logger.Error(err, "Cannot reload the certificate, the previous one stays in force", "file", f.cert)
	}
	return f.current, nil
}

// stampOf returns a text that differs when the file has changed.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), "\n")
}

// selfSigned is a self-signed certificate that is replaced before it expires.
type selfSigned struct {
	names []string
	now   func() time.Time

	mu      sync.Mutex
	ends    time.Time
	current *tls.Certificate
}

func (s *selfSigned) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.current != nil && now.Before(s.ends.Add(-renewBefore)) {
		return s.current, nil
	}
	made, err := makeCertificate(s.names, now)
	if err != nil {
		return nil, fmt.Errorf("generating a certificate for metrics: %w", err)
	}
	s.current, s.ends = made, now.Add(selfSignedFor)
	return s.current, nil
}

func makeCertificate(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
