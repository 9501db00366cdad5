package metrics

import (
	"net/http"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/harness"
)

func TestOnlyWhoHasTheRoleReadsMetrics(t *testing.T) {
	l := suite.Env(t, "rights")
	l.Tree(`{cpu: "1"}`)
	controller, extensions := suite.Both(t, "job")
	reader, stranger := suite.MetricsToken(t, "prometheus"), suite.MetricsToken(t, "stranger")
	for _, program := range []*harness.Program{controller, extensions} {
		for _, c := range []struct {
			who, token string
			want       int
		}{
			{"somebody without a token", "", http.StatusUnauthorized},
			{"somebody with a token that is none", "none", http.StatusUnauthorized},
			{"a ServiceAccount without the role", stranger, http.StatusForbidden},
			{"one with it", reader, http.StatusOK},
		} {
			harness.Eventually(t, 30*time.Second, c.who+" is answered by "+program.Name, func() (bool, string) {
				status, _, err := program.Scrape(t.Context(), c.token)
				harness.Must(t, err)
				// A role binding takes a moment to take effect.
				return status == c.want, http.StatusText(status)
			})
		}
	}
}
