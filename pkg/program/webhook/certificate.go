package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/program/selfsigned"
)

// Keys of the Secret. cert-manager and Secrets of type kubernetes.io/tls use the first two as well.
const (
	certificateKey     = corev1.TLSCertKey
	privateKey         = corev1.TLSPrivateKeyKey
	nextCertificateKey = "next.crt"
	nextPrivateKey     = "next.key"
)

// certificate is what the server presents: the last usable certificate of the Secret. It is safe for concurrent use.
type certificate struct {
	// expires is called with the end of its validity, in seconds since 1970.
	expires func(float64)

	mu      sync.Mutex
	pem     []byte
	current *tls.Certificate
}

var errNoCertificate = errors.New("there is no certificate yet")

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil, errNoCertificate
	}
	return c.current, nil
}

// observe reads the Secret. While it has no usable certificate, the previous one stays in force.
func (c *certificate) observe(ctx context.Context, secret *corev1.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pem := secret.Data[certificateKey]
	if len(pem) == 0 || bytes.Equal(pem, c.pem) {
		return
	}
	read, err := selfsigned.Pair{Certificate: pem, Key: secret.Data[privateKey]}.Load()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the certificate of the webhooks, the previous one stays in force", "secret", klog.KObj(secret))
		return
	}
	c.pem, c.current = pem, read
	c.expires(float64(read.Leaf.NotAfter.Unix()))
	klog.FromContext(ctx).Info("The webhooks serve a certificate", "secret", klog.KObj(secret),
		"serialNumber", fmt.Sprintf("%x", read.Leaf.SerialNumber), "notAfter", read.Leaf.NotAfter)
}
