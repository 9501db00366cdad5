// Package units selects, orders and groups the QueueUnits that the kubectl plugin shows. It uses no cluster and no
// clock.
//
// Terms. A Unit is the shown part of a QueueUnit: 100,000 complete objects would need hundreds of megabytes. Units
// are alike if they differ only in their names and ages. A group is one or more units that are alike.
package units

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/generated/kinds"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Head is the beginning of a page of a list of QueueUnits, as JSON.
type Head struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
}

// Page is one page of a list of QueueUnits, as JSON.
type Page struct {
	Head
	Items []Unit `json:"items"`
}

// Unit is the shown part of a QueueUnit, decoded from its JSON.
type Unit struct {
	Metadata struct {
		Namespace         string     `json:"namespace"`
		Name              string     `json:"name"`
		UID               string     `json:"uid"`
		CreationTimestamp time.Time  `json:"creationTimestamp"`
		DeletionTimestamp *time.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		ConsumerRef struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"consumerRef"`
		Priority       int32             `json:"priority"`
		SubmissionTime *time.Time        `json:"submissionTime"`
		Resource       map[string]Amount `json:"resource"`
		Active         *bool             `json:"active"`
		QuotaName      string            `json:"quotaName"`
		MaxSeconds     int32             `json:"maximumExecutionTimeSeconds"`
		Expected       int32             `json:"expectedRunTimeSeconds"`
		Growth         bool              `json:"growth"`
		PodSets        []struct {
			Name     string            `json:"name"`
			Count    int32             `json:"count"`
			Requests map[string]Amount `json:"requests"`
		} `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Phase       string     `json:"phase"`
		Reason      string     `json:"reason"`
		Text        string     `json:"message"`
		Queue       string     `json:"queue"`
		Quota       string     `json:"quota"`
		DequeueTime *time.Time `json:"dequeueTime"`
		Admitted    []struct {
			Name  string `json:"name"`
			Count int32  `json:"count"`
		} `json:"admittedPodSets"`
	} `json:"status"`
}

// Amount is a quantity as a user wrote it.
type Amount string

// UnmarshalJSON reads a string or a number.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '"' {
		*a = Amount(data)
		return nil
	}
	var text string
	err := json.Unmarshal(data, &text)
	*a = Amount(text)
	return err
}

// Quantity returns the amount; false if it is not a quantity.
func (a Amount) Quantity() (resource.Quantity, bool) {
	q, err := resources.Parse(string(a))
	return q, err == nil
}

// Phase returns the phase of the unit. An empty one means Enqueued.
func (u *Unit) Phase() v1alpha1.QueueUnitPhase {
	if u.Status.Phase == "" {
		return v1alpha1.PhaseEnqueued
	}
	return v1alpha1.QueueUnitPhase(u.Status.Phase)
}

// Submitted returns the time that orders units of the same priority.
func (u *Unit) Submitted() time.Time {
	ref := &u.Spec.ConsumerRef
	return arrival.Submitted(kinds.ByHand(ref.APIVersion, ref.Kind), ptr.Deref(u.Spec.SubmissionTime, time.Time{}), u.Metadata.CreationTimestamp)
}

// Requests returns what the unit requests or, while it holds quota, what the admitted pods request.
func (u *Unit) Requests() map[string]Amount {
	if len(u.Status.Admitted) == 0 || !u.Phase().HoldsQuota() {
		return u.Spec.Resource
	}
	all := maps.Clone(u.Spec.Resource)
	for _, set := range u.Spec.PodSets {
		for _, admitted := range u.Status.Admitted {
			if admitted.Name != set.Name || admitted.Count < 1 || admitted.Count >= set.Count {
				continue
			}
			for name, amount := range set.Requests {
				rest, valid := all[name].Quantity()
				if missing, is := amount.Quantity(); is && valid {
					missing.Mul(int64(set.Count - admitted.Count))
					rest.Sub(missing)
					all[name] = Amount(rest.String())
				}
			}
		}
	}
	return all
}

// Job returns the unit as users name it: by its job, such as "job/train", or by its own name, such as "qu/mine", if a
// user created it. All commands accept either.
func (u *Unit) Job() string {
	ref := &u.Spec.ConsumerRef
	if kinds.ByHand(ref.APIVersion, ref.Kind) {
		return byHand + u.Metadata.Name
	}
	return strings.ToLower(ref.Kind) + "/" + u.JobName()
}

// JobName returns the name of the job. Units for its growth have a suffix.
func (u *Unit) JobName() string {
	if u.Spec.Growth {
		return u.Spec.ConsumerRef.Name + decision.GrowthSuffix
	}
	return u.Spec.ConsumerRef.Name
}

// JobOf is like Job, but knows only the kind of the job and the name of the unit.
func JobOf(kind, unit string) string {
	if job, known := decision.JobOf(kind, unit); known {
		return strings.ToLower(kind) + "/" + job
	}
	return byHand + unit
}

// byHand is the prefix of units whose kind of job kube-queue does not know.
const byHand = "qu/"

// Holding reports whether a user holds the unit.
func (u *Unit) Holding() bool { return u.Spec.Active != nil && !*u.Spec.Active }
