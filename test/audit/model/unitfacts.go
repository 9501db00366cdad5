package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// UnitFacts is a QueueUnit as one write left it.
type UnitFacts struct {
	Row          *row // of its job's kind; nil for a thing of the user's own
	JobKind      string
	jobNamespace string
	jobName      string
	jobUID       string
	PodSets      bool // it has any
	Sum, Total   Amounts
	Sets         []podSet
	Bad          string // an amount that cannot be read
	Priority     int64
	Submitted    time.Time
	quotaName    string // as the spec, or else the unit's label, says
	Active       bool
	MaxTime      time.Duration // 0: as long as it takes

	Phase, reason, Quota string
	Queue                string
	Attempts             int
	DequeueTime          time.Time
	RequeueAt            time.Time
	Evicted              bool
	EvictedReason        string
}

// Phases of a unit.
const (
	Enqueued = "Enqueued"
	Reserved = "Reserved"
	Dequeued = "Dequeued"
	Running  = "Running"
	Backoff  = "Backoff"
)

// Holds reports whether a unit says that it has quota.
func (u *UnitFacts) Holds() bool {
	return u != nil && (u.Phase == Reserved || u.Phase == Dequeued || u.Phase == Running)
}

func (u *UnitFacts) Ended() bool {
	return u.Phase == string(Succeeded) || u.Phase == string(Failed)
}

// Waits reports whether a unit waits for quota now.
func (u *UnitFacts) Waits(now time.Time) bool {
	switch u.reason {
	case "Inactive", "SuspendedByUser", "InvalidRequest", "QueueStopped", "JobChanged", "Terminating":
		return false
	}
	return u.Active && u.Bad == "" && (u.Phase == Enqueued || u.Phase == Backoff && !now.Before(u.RequeueAt))
}

// Stopped reports whether an eviction has come so far that the job is at rest.
func (u *UnitFacts) Stopped() bool {
	return u.Evicted && (u.EvictedReason == "Stopped" || u.EvictedReason == "SuspendedByUser" || u.EvictedReason == "JobChanged")
}

type unitObject struct {
	Spec struct {
		ConsumerRef struct{ APIVersion, Kind, Namespace, Name, UID string }
		PodSets     []struct {
			Count             int64
			Requests, Limits  Quantities
			PriorityClassName string
			QuotaScopes       []string
			Unset             map[string]string
		}
		Priority       int64
		SubmissionTime time.Time
		Resource       Quantities
		Active         *bool
		QuotaName      string

		MaximumExecutionTimeSeconds int64
	}
	Status struct {
		Phase, Reason, Quota string
		Queue                string
		Attempts             int
		DequeueTime          time.Time
		RequeueState         struct{ RequeueAt time.Time }
		Conditions           []condition
	}
}

func parseUnit(d *decoder, kind string, m *meta, raw json.RawMessage) (any, error) {
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
	u := &UnitFacts{
		Row: rowOfKind(group, version, ref.Kind), JobKind: d.word(ref.Kind), jobNamespace: d.word(ref.Namespace),
		jobName: ref.Name, jobUID: ref.UID, PodSets: len(o.Spec.PodSets) > 0,
		quotaName: o.Spec.QuotaName, Active: o.Spec.Active == nil || *o.Spec.Active,
		Phase: d.word(o.Status.Phase), reason: d.word(o.Status.Reason), Quota: d.word(o.Status.Quota),
		Queue:    d.word(o.Status.Queue),
		Attempts: o.Status.Attempts, DequeueTime: o.Status.DequeueTime, RequeueAt: o.Status.RequeueState.RequeueAt,
		MaxTime:  time.Duration(o.Spec.MaximumExecutionTimeSeconds) * time.Second,
		Priority: o.Spec.Priority, Submitted: o.Spec.SubmissionTime,
	}
	if u.Phase == "" {
		u.Phase = Enqueued
	}
	if u.quotaName == "" {
		u.quotaName = m.Labels[labelQuotaName]
	}
	for _, c := range o.Status.Conditions {
		if c.Type == "Evicted" {
			u.Evicted, u.EvictedReason = c.Status == "True", c.Reason
		}
	}
	u.amounts(&o)
	return u, nil
}

func (u *UnitFacts) amounts(o *unitObject) {
	var err error
	if u.Total, err = o.Spec.Resource.Ceil(); err != nil {
		u.Bad = fmt.Sprintf("spec.resource: %v", err)
	}
	u.Sum = Amounts{}
	for i, set := range o.Spec.PodSets {
		requests, err := set.Requests.Ceil()
		if err != nil {
			u.Bad = fmt.Sprintf("spec.podSets[%d]: %v", i, err)
			continue
		}
		u.Sum.AddTimes(requests, set.Count)
		limits, err := set.Limits.Ceil()
		if err != nil {
			u.Bad = fmt.Sprintf("spec.podSets[%d]: limits: %v", i, err)
		}
		u.Sets = append(u.Sets, podSet{
			Count: set.Count, requests: requests, limits: limits, Class: classOf(set.QuotaScopes, set.PriorityClassName), Unset: set.Unset,
		})
	}
}
