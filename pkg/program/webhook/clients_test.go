package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

// authority signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t}
	made := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.certificate, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign returns a certificate. It is self-signed if the authority has no certificate yet.
func (a *authority) sign(wanted *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	wanted.SerialNumber, wanted.NotBefore = big.NewInt(1), time.Now().Add(-time.Hour)
	if wanted.NotAfter.IsZero() {
		wanted.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = wanted, key
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func clientFor(use x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{use}}
}

func TestOnlyClientsOfTheCAAreAnswered(t *testing.T) {
	ours, others := newAuthority(t, "api servers"), newAuthority(t, "api servers")
	apiServer, stranger := ours.sign(clientFor(x509.ExtKeyUsageClientAuth)), others.sign(clientFor(x509.ExtKeyUsageClientAuth))
	expired := clientFor(x509.ExtKeyUsageClientAuth)
	expired.NotAfter = time.Now().Add(-time.Minute)
	between := &authority{t: t}
	signed := ours.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	between.certificate, between.key = signed.Leaf, signed.PrivateKey.(*ecdsa.PrivateKey)
	chained := between.sign(clientFor(x509.ExtKeyUsageClientAuth))
	chained.Certificate = append(chained.Certificate, signed.Certificate[0])

	file := filepath.Join(t.TempDir(), "ca.crt")
	trust := func(certificate *x509.Certificate) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600))
	}
	trust(ours.certificate)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{}
	require.NoError(t, demandClients(server.TLS, file))
	server.StartTLS()
	defer server.Close()
	sessions := map[string]tls.ClientSessionCache{}
	answered := func(who string, want bool, certificates ...tls.Certificate) {
		t.Helper()
		// Each call opens its own connection, which resumes an earlier session with the certificate if possible.
		id := ""
		if len(certificates) > 0 {
			id = string(certificates[0].Leaf.Raw)
		}
		if sessions[id] == nil {
			sessions[id] = tls.NewLRUClientSessionCache(1)
		}
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates, ClientSessionCache: sessions[id]}}
		response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(server.URL)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: error %v", who, err)
		}
	}
	answered("the API server", true, apiServer)
	answered("the API server again", true, apiServer)
	answered("the API server with a chain", true, chained)
	answered("somebody without a certificate", false)
	answered("somebody with a certificate of another CA of this name", false, stranger)
	answered("somebody with a certificate for servers", false, ours.sign(clientFor(x509.ExtKeyUsageServerAuth)))
	answered("somebody with an expired certificate", false, ours.sign(expired))
	answered("somebody whose certificate signs itself", false, (&authority{t: t}).sign(clientFor(x509.ExtKeyUsageClientAuth)))

	trust(others.certificate)
	answered("the API server with a session, after a change of the CA", false, apiServer)
	answered("the API server of another CA, after the change", true, stranger)
	trust(apiServer.Leaf)
	answered("the API server whose certificate is in the file", true, apiServer)
	answered("another client of its CA", false, ours.sign(clientFor(x509.ExtKeyUsageClientAuth)))
	require.NoError(t, os.Remove(file))
	answered("the API server without a CA", false, apiServer)
}

func TestAFileWithoutACAIsAnError(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(empty, []byte("none"), 0o600))
	for file, want := range map[string]string{empty: "has no certificate in PEM format", empty + ".none": "no such file"} {
		_, err := Start(t.Context(), Options{Settings: Settings{Address: "127.0.0.1:0", ClientCA: file}, Client: newWorld(t).client, Namespace: namespace, Service: service})
		require.ErrorSays(t, err, want, "--webhook-client-ca-file")
	}
}
