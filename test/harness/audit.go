package harness

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/audit/log"
)

// Check runs the audit checker on the log so far, and fails the test for new violations.
func (l *Env) Check(ctx context.Context) {
	l.t.Helper()
	log := l.Log(ctx)
	own := l.patient(l.Audit)
	report, err := log.Check(own)
	Must(l.t, err)
	for _, v := range report.Violations() {
		key := fmt.Sprint(v.Rule, v.Object, v.Revision)
		if !l.suite.reported[key] && !slices.Contains(l.Allowed, v.Check) {
			l.t.Errorf("the audit log is not clean: %v", v)
		}
		l.suite.reported[key] = true
	}
	for _, options := range l.suite.Audits { // later tests may check with these
		if reflect.DeepEqual(options, l.Audit) {
			continue
		}
		report, err = log.Check(l.patient(options))
		Must(l.t, err)
		for _, v := range report.Violations() {
			l.suite.reported[fmt.Sprint(v.Rule, v.Object, v.Revision)] = true
		}
	}
}

// patient returns options for a slow machine, where programs write much later.
func (l *Env) patient(options audit.Options) audit.Options {
	options.StatusInterval = &l.suite.StatusInterval
	if options.Grace == nil {
		options.Grace = new(30 * time.Second)
	}
	return options
}

// Log returns the audit log up to now.
func (l *Env) Log(ctx context.Context) *audit.Log {
	l.t.Helper()
	Must(l.t, l.suite.CompleteAuditLog(ctx))
	log, err := audit.ReadFile(l.suite.AuditLog)
	Must(l.t, err)
	return log
}

// Refusals returns the refused requests in the namespace whose message contains the text, except those of the test.
func (l *Env) Refusals(text string) (found []string) {
	l.t.Helper()
	Must(l.t, l.suite.CompleteAuditLog(l.t.Context()))
	Must(l.t, log.Open(l.suite.AuditLog).Read(func(_ int, line []byte) error {
		if !bytes.Contains(line, []byte(text)) {
			return nil
		}
		e, err := log.Parse(line)
		if err != nil || e.ObjectRef == nil || e.ObjectRef.Namespace != l.Namespace || e.User.Username == "admin" ||
			e.ResponseStatus == nil || !strings.Contains(e.ResponseStatus.Message, text) {
			return err
		}
		found = append(found, fmt.Sprintf("%s may not %s %s %s: %s", e.User.Username, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name, e.ResponseStatus.Message))
		return nil
	}))
	return found
}

// ExpectOneAfterTheOther checks in the audit log that the second job had no pod before the first had ended.
func (l *Env) ExpectOneAfterTheOther(kind, first, second string) {
	l.t.Helper()
	log := l.Log(l.t.Context())
	one, err := log.Life(kind, l.Namespace, first)
	Must(l.t, err)
	two, err := log.Life(kind, l.Namespace, second)
	Must(l.t, err)
	if !one.Ended.Before(two.FirstPod) {
		l.t.Errorf("%s had a pod at %v, before the end of %s at %v", second, two.FirstPod, first, one.Ended)
	}
}
