package audit

import (
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ResourceQuota counts the pods of its namespace. This file has the API server's rules for what each key counts. A
// quota with scopes counts only some of the pods, and is not checked.

// quotaFacts has the limits of a ResourceQuota on pods after a write, by key. A limit is the lower value of spec and
// status. It is 0 while the status does not contain the key: then no pod can be created.
type quotaFacts struct{ hard amounts }

func readResourceQuota(_ *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	var o corev1.ResourceQuota
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	q := &quotaFacts{amounts{}}
	if o.Spec.ScopeSelector != nil || len(o.Spec.Scopes) > 0 {
		return q, nil
	}
	keys := corev1.ResourceList{}
	maps.Copy(keys, o.Spec.Hard)
	maps.Copy(keys, o.Status.Hard)
	for key, hard := range keys { // of the status, if there is one
		if _, pods := counts(string(key)); !pods {
			continue
		}
		if wanted, ok := o.Spec.Hard[key]; ok && wanted.Cmp(hard) < 0 {
			hard = wanted
		}
		_, decided := o.Status.Hard[key]
		_, used := o.Status.Used[key]
		q.hard[string(key)] = 0
		if decided && used {
			q.hard[string(key)] = floorOf(string(key), exact(hard))
		}
	}
	return q, nil
}

// Keys for numbers of pods: pods that have not ended, and all pods.
const (
	livePods = "pods"
	everyPod = "count/pods"
)

// counts returns what a key counts, for example "requests.cpu" for "cpu", and whether the key is about pods.
func counts(key string) (of string, pods bool) {
	if key == livePods || key == everyPod {
		return key, true
	}
	if name, ok := strings.CutPrefix(key, "limits."); ok {
		return key, standard(name)
	}
	name, prefixed := strings.CutPrefix(key, "requests.")
	switch {
	case standard(name), strings.HasPrefix(name, "hugepages-"):
		return "requests." + name, true
	default: // an extended resource counts only with a prefix
		return key, prefixed && strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/")
	}
}

func standard(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

// podGroup has pods that count alike: a single pod, or the pods of a pod set. Amounts are totals. A unit without pod
// sets has a group without a number.
type podGroup struct {
	count            int64
	requests, limits amounts
	ended            bool
}

// weigh returns what a key counts of some pods. Pods that have ended count only as objects.
func weigh(key string, groups ...podGroup) (sum int64) {
	of, _ := counts(key)
	request, isRequest := strings.CutPrefix(of, "requests.")
	for _, g := range groups {
		switch {
		case of == everyPod:
			sum += g.count
		case g.ended:
		case of == livePods:
			sum += g.count
		case isRequest:
			sum += g.requests[request]
		default:
			sum += g.limits[strings.TrimPrefix(of, "limits.")]
		}
	}
	return sum
}
