package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/audit"
)

// Check has the independent checker read the log of everything so far.
func (l *Lab) Check(ctx context.Context) {
	l.t.Helper()
	log := l.Log(ctx)
	report, err := log.Check(l.Audit)
	Must(l.t, err)
	for _, v := range report.Violations() {
		key := fmt.Sprint(v.Rule, v.Object, v.Revision)
		if !l.site.judged[key] && !slices.Contains(l.Allowed, v.Check) {
			l.t.Errorf("the audit log is not clean: %v", v)
		}
		l.site.judged[key] = true
	}
	if l.Audit.Oversell == "" {
		return
	}
	report, err = log.Check(audit.Options{}) // as the tests after this one do
	Must(l.t, err)
	for _, v := range report.Violations() {
		l.site.judged[fmt.Sprint(v.Rule, v.Object, v.Revision)] = true
	}
}

// Log is the audit log up to now.
func (l *Lab) Log(ctx context.Context) *audit.Log {
	l.t.Helper()
	marker, err := l.Kube.CoreV1().ConfigMaps("default").Create(ctx,
		ConfigMap(fmt.Sprintf("marker-%d", time.Now().UnixNano())), metav1.CreateOptions{})
	Must(l.t, err)
	Must(l.t, audit.WaitFor(ctx, l.site.AuditLog, audit.Marker{Namespace: marker.Namespace, Name: marker.Name}))
	log, err := audit.ReadFile(l.site.AuditLog)
	Must(l.t, err)
	return log
}
