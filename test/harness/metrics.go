package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// scrapers are two ServiceAccounts. Of these, only prometheus may read metrics.
const scrapers = `apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: kube-queue}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: kube-queue}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus-reads-kube-queue}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kube-queue-metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: kube-queue}]
`

// MetricsToken returns a token of the ServiceAccount prometheus, which may read metrics, or stranger,
// which may not.
func (s *Suite) MetricsToken(t testing.TB, account string) string {
	t.Helper()
	if out, err := s.KubectlWith(t.Context(), scrapers, "apply", "-f", "-"); err != nil {
		t.Fatal(err, out)
	}
	config, _, err := s.ServiceAccountConfig(t.Context(), account)
	Must(t, err)
	return config.BearerToken
}

// Scrape requests the metrics with a token, which can be empty. It returns the HTTP status and the lines.
func (p *Program) Scrape(ctx context.Context, token string) (status int, lines []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.metrics+"/metrics", nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.Split(string(text), "\n"), err
}

// Metrics returns the lines of the metrics, with a token that may read them. It waits until the request is
// authorized: a role binding needs time to take effect, and refusals are cached for ten seconds.
func (p *Program) Metrics(t testing.TB, token string) (lines []string) {
	t.Helper()
	Eventually(t, 30*time.Second, p.Name+" answers a scrape", func() (bool, string) {
		status, answer, err := p.Scrape(t.Context(), token)
		lines = answer
		return err == nil && status == http.StatusOK, fmt.Sprint(status, err, answer)
	})
	return lines
}
