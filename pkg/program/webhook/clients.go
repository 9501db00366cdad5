package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

const flagClientCA = "webhook-client-ca-file"

// demandClients makes the server accept only clients whose certificate is signed by a CA in the file. The file is
// read for each connection, because it can change.
func demandClients(config *tls.Config, file string) error {
	if _, err := readClientCA(file); err != nil {
		return err
	}
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(c tls.ConnectionState) error {
		roots, err := readClientCA(file)
		if err != nil {
			return err
		}
		between := x509.NewCertPool()
		for _, certificate := range c.PeerCertificates[1:] {
			between.AddCert(certificate)
		}
		_, err = c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	return nil
}

func readClientCA(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading who may call the webhooks (--%s): %w", flagClientCA, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading who may call the webhooks (--%s): %s has no certificate in PEM format", flagClientCA, file)
	}
	return pool, nil
}
