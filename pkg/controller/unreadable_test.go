package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/test/require"
)

// seenUnit returns a unit as the loop receives it.
func seenUnit(t *testing.T, generation int64, spec string) lenient.Object {
	t.Helper()
	unit, err := codec.UnitKind().Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"u","uid":"uid","resourceVersion":"7","generation":%d},"spec":%s}`, generation, spec))
	require.NoError(t, err)
	return codec.Compactor{}.Compacted(unit)
}

func TestAnUnreadableUnitIsReportedOfOncePerSpec(t *testing.T) {
	var reported []string
	units := unreadableUnits{emit: func(n backend.Notice) {
		reported = append(reported, fmt.Sprint(n.About.GetKind(), " ", n.About.GetNamespace(), "/", n.About.GetName(), " ", n.About.GetUID(), " ", n.Type, " ", n.Reason, " ", n.EventKey()))
	}}
	see := func(generation int64, cpu string) {
		units.see(klog.Background(), seenUnit(t, generation, `{"resource":{"cpu":`+cpu+`}}`))
	}
	see(1, `"1e1.5"`)
	see(1, `"1e1.5"`)
	see(2, `"1e2.5"`)
	see(3, `"1"`)
	see(2, `"1e2.5"`)
	units.gone("a/u")
	if len(units.reported) != 0 {
		t.Errorf("it remembers %v", units.reported)
	}
	is := func(generation int) string {
		return fmt.Sprint("QueueUnit a/u uid Warning UnreadableUnit ", generation)
	}
	if want := []string{is(1), is(2), is(2)}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
}

func TestAUnitBeyondTheBoundsIsReportedLikeOneThatCannotBeRead(t *testing.T) {
	var reported []string
	units := unreadableUnits{emit: func(n backend.Notice) {
		reported = append(reported, string(n.Reason)+" "+n.Message)
	}}
	units.see(klog.Background(), seenUnit(t, 1, `{"quotaName":"`+strings.Repeat("q", 254)+`"}`))
	if len(reported) != 1 || !strings.HasPrefix(reported[0], "UnreadableUnit The unit is too large: spec.quotaName has 254 characters, but at most 253 are allowed; ") {
		t.Errorf("reported %q", reported)
	}
}
