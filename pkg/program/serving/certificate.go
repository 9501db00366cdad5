package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/program/selfsigned"
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
	return OfFiles(ctx, o.certFile, o.keyFile)
}

// OfFiles returns the certificate of the files in the settings flagCertFile and flagKeyFile.
func OfFiles(ctx context.Context, cert, key string) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	read := &certificateFiles{logger: klog.FromContext(ctx), cert: cert, key: key}
	_, err := read.get(nil)
	return read.get, err
}

// certificateFiles are reloaded when one of them changes. While they are unusable, for example between the writes of
// the two files, the previous certificate stays in force.
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

// stampOf returns a text that changes when the file does.
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
	current *tls.Certificate
}

func (s *selfSigned) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.current != nil && now.Before(s.current.Leaf.NotAfter.Add(-selfsigned.RenewBefore)) {
		return s.current, nil
	}
	pair, err := selfsigned.Make(s.names, now)
	if err != nil {
		return nil, fmt.Errorf("a certificate for metrics: %w", err)
	}
	made, err := pair.Load()
	if err != nil {
		return nil, fmt.Errorf("a certificate for metrics: %w", err)
	}
	s.current = made
	return s.current, nil
}
