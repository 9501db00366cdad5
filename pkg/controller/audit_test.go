package controller

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/test/require"
)

// audited is a loop with its own cache of units and its own API server.
type audited struct {
	*measured
	server map[string]*schedulingv1alpha1.QueueUnit
	reads  int
}

func newAudited(t *testing.T) *audited {
	t.Helper()
	a := &audited{measure(t), map[string]*schedulingv1alpha1.QueueUnit{}, 0}
	a.auditor.units = cache.NewStore(cache.MetaNamespaceKeyFunc)
	a.auditor.start = func(read func(context.Context)) { read(a.Context()) }
	a.auditor.get = func(_ context.Context, _, name string) (lenient.Object, error) {
		a.reads++
		if unit := a.server[name]; unit != nil {
			return unit, nil
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "queueunits"}, name)
	}
	a.turns(0, quotaListed, a.tree(goodRoot))
	return a
}

// unit stores a running unit that requests 1 CPU in the API server and in the cache, but the loop does not see it.
func (a *audited) unit(name, uid string, version int) {
	a.Helper()
	a.server[name] = &schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(version)},
		Spec:       schedulingv1alpha1.QueueUnitSpec{Resource: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		Status:     schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseRunning, Quota: "root"}}
	require.NoError(a, a.auditor.units.Add(a.server[name]))
}

// confirms advances the clock until a difference is confirmed and healed.
func (a *audited) confirms() {
	a.Helper()
	a.turns(AuditInterval)
	a.turns(confirmInterval)
	a.turns(0)
}

func TestAnAuditFindsUnitsWhoseEventsWereLost(t *testing.T) {
	a := newAudited(t)
	a.unit("lost", "uid", 5)
	a.confirms()
	if used := a.core.Usage()[0].Used; len(used) != 1 || used[0].Value != 1000 {
		t.Errorf("used is %v, want the CPU of the unit", used)
	}
	a.shows(`audits_total 1`, `invariant_violations_total 1`)
	a.confirms()
	a.shows(`audits_total 2`, `invariant_violations_total 1`)

	a.unit("lost", "uid", 6) // a change that the loop does not see
	a.server["lost"].Status.Phase = schedulingv1alpha1.PhaseSucceeded
	a.confirms()
	if used := a.core.Usage()[0].Used; len(used) != 0 {
		t.Errorf("used is %v, want nothing: the unit has ended", used)
	}
	a.shows(`invariant_violations_total 2`)

	a.unit("gone", "uid2", 7)
	a.confirms()
	require.NoError(t, a.auditor.units.Delete(a.server["gone"]))
	delete(a.server, "gone")
	a.confirms()
	if used := a.core.Usage()[0].Used; len(used) != 0 || a.core.Knows("a/gone") {
		t.Errorf("used is %v, and known is %t, want neither", used, a.core.Knows("a/gone"))
	}
	a.shows(`audits_total 5`, `invariant_violations_total 4`)
}

func TestAnAuditDoesNotReportEventsThatAreOnTheirWay(t *testing.T) {
	a := newAudited(t)
	a.unit("changes", "uid", 5)
	a.turns(AuditInterval)
	a.unit("changes", "uid", 6)
	a.turns(confirmInterval)
	a.unit("arrives", "uid2", 7)
	a.turns(AuditInterval - confirmInterval)
	a.turns(confirmInterval, unitSeen(a.server["changes"]), unitSeen(a.server["arrives"]))
	if a.reads != 0 {
		t.Errorf("%d units were read, want none", a.reads)
	}
	a.shows(`audits_total 2`, `invariant_violations_total 0`)
}
