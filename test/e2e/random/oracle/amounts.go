package oracle

import corev1 "k8s.io/api/core/v1"

// MaxJobs is a resource. Each unit that holds quota uses 1 of it.
const MaxJobs = "kube-queue/max-jobs"

// Amounts are amounts of resources: milli-CPU for cpu, integers for all others.
type Amounts map[string]int64

// AmountsOf converts a list.
func AmountsOf(list corev1.ResourceList) Amounts {
	a := Amounts{}
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			a[string(name)] = quantity.MilliValue()
		} else {
			a[string(name)] = quantity.Value()
		}
	}
	return a
}

func (a Amounts) add(b Amounts) {
	for name, amount := range b {
		a[name] += amount
	}
}

// max returns the larger amount of each resource.
func (a Amounts) max(b Amounts) Amounts {
	greater := Amounts{}
	for name := range a {
		greater[name] = max(a[name], b[name])
	}
	for name := range b {
		greater[name] = max(a[name], b[name])
	}
	return greater
}
