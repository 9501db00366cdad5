package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/arrival"
)

// naming returns a unit that requests one of each resource.
func naming(name, after string, names ...string) input {
	list := corev1.ResourceList{}
	for _, resourceName := range names {
		list[corev1.ResourceName(resourceName)] = resource.MustParse("1")
	}
	return unitSeen(&schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "7",
			Annotations: arrival.Annotate(nil, after)},
		Spec: schedulingv1alpha1.QueueUnitSpec{Resource: list},
	})
}

func TestNamesAreForgottenAfterAWhileUnlessSomethingUsesThem(t *testing.T) {
	m := measure(t)
	m.turns(0, quotaListed, m.tree(goodRoot), naming("u", "", "a.example/waits"), naming("v", "", "a.example/gone"))
	m.turns(PublishInterval, unitGone("a/v", "v"))
	m.shows("resource_names 4") // with cpu, which the tree names, and max-jobs
	m.turns(forgetInterval-PublishInterval-time.Millisecond, naming("later", "comes-first", "a.example/delayed"))
	if m.names.Len() != 5 {
		t.Errorf("%d names before it is time, want 5", m.names.Len())
	}
	m.turns(time.Millisecond)
	m.shows("resource_names 4")
	id := m.names.ID("a.example/new")
	m.turns(arrival.Patience) // the delayed unit is delivered, with its own name
	for _, name := range []string{"a.example/waits", "a.example/delayed"} {
		if id == m.names.ID(name) {
			t.Errorf("the ID of %s was assigned again", name)
		}
	}
}

func TestManyNewNamesAreForgottenBeforeItIsTime(t *testing.T) {
	m := measure(t)
	m.turns(0, quotaListed, m.tree(goodRoot))
	const each = 64
	most := 0
	for i := range 4 * forgetNames / each {
		names := make([]string, each)
		for j := range names {
			names[j] = fmt.Sprintf("a.example/%s-%d", strings.Repeat("x", 40), i*each+j)
		}
		unit := fmt.Sprint("u", i)
		m.turns(0, naming(unit, "", names...), unitGone("a/"+unit, unit))
		most = max(most, m.names.Len())
	}
	if limit := forgetNames + 2*2 + each; most > limit {
		t.Errorf("there were %d names at a time, of which no two units were alive; want at most %d", most, limit)
	}
}
