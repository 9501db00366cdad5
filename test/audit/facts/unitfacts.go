package facts

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// Unit describes a QueueUnit after a write.
type Unit struct {
	Row       *Row // of its job's kind; nil if it represents no job
	JobKind   string
	JobName   string
	JobUID    string
	PodSets   bool // whether it has pod sets
	Total     Amounts
	Sets      []PodSet
	Bad       string // error in an amount
	QuotaName string // from the spec, or else from the label
	Active    bool
	MaxTime   time.Duration // 0: no limit

	Phase, Reason, Quota string
	Says                 uint64 // digest of the message
	Attempts             int
	DequeueTime          time.Time
	RequeueAt            time.Time
	Evicted              bool
	EvictedReason        string
	PodsReady            bool     // whether it shows that all pods of its job were ready
	OverQuota            bool     // whether it shows that its pods exceed what was admitted
	Unscheduled          uint64   // digest of what it shows about pods without a node; 0 if nothing
	Unready              []string // the admission checks that are not Ready
}

// Phases of a unit.
const (
	Enqueued = "Enqueued"
	Reserved = "Reserved"
	Dequeued = "Dequeued"
	Running  = "Running"
	Backoff  = "Backoff"
)

// Holds reports whether the unit is in a phase that holds quota.
func (u *Unit) Holds() bool {
	return u != nil && (u.Phase == Reserved || u.Phase == Dequeued || u.Phase == Running)
}

// PodsRemain reports whether the unit shows that it holds quota only because something of its job is
// left.
func (u *Unit) PodsRemain() bool { return u.Phase == Running && u.Reason == "PodsRemain" }

func (u *Unit) Ended() bool {
	return u.Phase == string(Succeeded) || u.Phase == string(Failed)
}

// digest distinguishes messages, which are too many to store.
func digest(message string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(message))
	return h.Sum64()
}

// Asks reports whether the unit waits for somebody to do something.
func (u *Unit) Asks() bool {
	switch u.Reason {
	case "Inactive", "QueueStopped", "NoQuota", "QuotaNotAllowed", "InvalidQuotaTree", "ExceedsMaxQuota", "ExceedsMinQuota",
		"InvalidRequest", "Terminating", "AdmissionCheckMissing", "AdmissionCheckRejected":
		return true
	}
	return false
}

func (u *Unit) Queued() bool { return u.Phase == Enqueued || u.Phase == Backoff }

// Waits reports whether the unit waits for quota at a time.
func (u *Unit) Waits(now time.Time) bool {
	switch u.Reason {
	case "Inactive", "SuspendedByUser", "InvalidRequest", "QueueStopped", "JobChanged", "Terminating", "AdmissionCheckMissing", "AdmissionCheckRejected":
		return false
	}
	return u.Active && u.Bad == "" && u.Queued() && !now.Before(u.RequeueAt)
}

// Stopped reports whether the job has stopped after an eviction.
func (u *Unit) Stopped() bool {
	return u.Evicted && (u.EvictedReason == "Stopped" || u.EvictedReason == "SuspendedByUser" || u.EvictedReason == "JobChanged")
}

// PodSet is a group of equal pods of a unit.
type PodSet struct {
	Count            int64
	Requests, Limits Amounts // of one pod
	Class            Class
}

type unitObject struct {
	Spec struct {
		ConsumerRef struct{ APIVersion, Kind, Namespace, Name, UID string }
		PodSets     []struct {
			Name              string
			Count             int64
			Requests, Limits  Quantities
			PriorityClassName string
			QuotaScopes       []string
		}
		Resource  Quantities
		Active    *bool
		QuotaName string

		MaximumExecutionTimeSeconds int64
	}
	Status struct {
		Phase, Reason, Quota string
		Message              string
		Attempts             int
		DequeueTime          time.Time
		RequeueState         struct{ RequeueAt time.Time }
		Conditions           []condition
		AdmissionChecks      []struct{ Name, State string }
		AdmittedPodSets      []struct {
			Name  string
			Count int64
		}
	}
}

func parseUnit(kind string, m *meta, raw json.RawMessage) (any, error) {
	if kind != "QueueUnit" {
		return nil, nil
	}
	var o unitObject
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	ref := o.Spec.ConsumerRef
	group, version, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group, version = "", ref.APIVersion
	}
	u := &Unit{
		Row: rowOfKind(group, version, ref.Kind), JobKind: word(ref.Kind),
		JobName: ref.Name, JobUID: ref.UID, PodSets: len(o.Spec.PodSets) > 0,
		QuotaName: o.Spec.QuotaName, Active: o.Spec.Active == nil || *o.Spec.Active,
		Phase: word(o.Status.Phase), Reason: word(o.Status.Reason), Quota: word(o.Status.Quota),
		Says:     digest(o.Status.Message),
		Attempts: o.Status.Attempts, DequeueTime: o.Status.DequeueTime, RequeueAt: o.Status.RequeueState.RequeueAt,
		MaxTime: time.Duration(o.Spec.MaximumExecutionTimeSeconds) * time.Second,
	}
	if u.Phase == "" {
		u.Phase = Enqueued
	}
	if u.QuotaName == "" {
		u.QuotaName = m.Labels[labelQuotaName]
	}
	for _, c := range o.Status.Conditions {
		switch c.Type {
		case "Evicted":
			u.Evicted, u.EvictedReason = c.Status == "True", c.Reason
		case "PodsReady":
			u.PodsReady = c.Status == "True"
		case "OverQuota":
			u.OverQuota = c.Status == "True"
		case "PodsScheduled":
			u.Unscheduled = digest(c.Message)
		}
	}
	for _, c := range o.Status.AdmissionChecks {
		if c.State != "Ready" {
			u.Unready = append(u.Unready, word(c.Name))
		}
	}
	u.amounts(&o)
	return u, nil
}

func (u *Unit) amounts(o *unitObject) {
	var err error
	if u.Total, err = o.Spec.Resource.Ceil(); err != nil {
		u.Bad = fmt.Sprintf("spec.resource: %v", err)
	}
	for i, set := range o.Spec.PodSets {
		requests, err := set.Requests.Ceil()
		if err != nil {
			u.Bad = fmt.Sprintf("spec.podSets[%d]: %v", i, err)
			continue
		}
		if admitted := u.admitted(o, set.Name, set.Count); admitted < set.Count {
			u.Total.AddTimes(requests, admitted-set.Count)
			set.Count = admitted
		}
		limits, err := set.Limits.Ceil()
		if err != nil {
			u.Bad = fmt.Sprintf("spec.podSets[%d]: limits: %v", i, err)
		}
		u.Sets = append(u.Sets, PodSet{
			Count: set.Count, Requests: requests, Limits: limits, Class: classOf(set.QuotaScopes, set.PriorityClassName),
		})
	}
}

// admitted returns with how many pods of a pod set the unit holds quota.
func (u *Unit) admitted(o *unitObject, podSet string, count int64) int64 {
	for _, set := range o.Status.AdmittedPodSets {
		if u.Holds() && set.Name == podSet {
			return min(set.Count, count)
		}
	}
	return count
}

// Pods returns with how many pods the unit is charged.
func (u *Unit) Pods() (pods int64) {
	for _, set := range u.Sets {
		pods += set.Count
	}
	return pods
}
