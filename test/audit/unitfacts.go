package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// unitFacts is a QueueUnit as one write left it.
type unitFacts struct {
	row          *row // of its job's kind; nil for a thing of the user's own
	jobKind      string
	jobNamespace string
	jobName      string
	jobUID       string
	podSets      bool // it has any
	sum, total   amounts
	sets         []podSet
	bad          string // an amount that cannot be read
	priority     int64
	submitted    time.Time
	quotaName    string // as the spec, or else the unit's label, says
	active       bool
	maxTime      time.Duration // 0: as long as it takes

	phase, reason, quota string
	queue                string
	attempts             int
	dequeueTime          time.Time
	requeueAt            time.Time
	evicted              bool
	evictedReason        string
}

// Phases of a unit.
const (
	enqueued = "Enqueued"
	reserved = "Reserved"
	dequeued = "Dequeued"
	running  = "Running"
	backoff  = "Backoff"
)

// holds tells whether a unit says that it has quota.
func (u *unitFacts) holds() bool {
	return u != nil && (u.phase == reserved || u.phase == dequeued || u.phase == running)
}

func (u *unitFacts) ended() bool {
	return u.phase == string(succeeded) || u.phase == string(failed)
}

// inLine tells whether a unit asks for quota now.
func (u *unitFacts) inLine(now time.Time) bool {
	switch u.reason {
	case "Inactive", "SuspendedByUser", "InvalidRequest", "QueueStopped":
		return false
	}
	return u.active && u.bad == "" && (u.phase == enqueued || u.phase == backoff && !now.Before(u.requeueAt))
}

// stopped tells whether an eviction has come so far that the job is at rest.
func (u *unitFacts) stopped() bool {
	return u.evicted && (u.evictedReason == "Stopped" || u.evictedReason == "SuspendedByUser")
}

type unitObject struct {
	Spec struct {
		ConsumerRef struct{ APIVersion, Kind, Namespace, Name, UID string }
		PodSets     []struct {
			Count             int64
			Requests, Limits  quantities
			PriorityClassName string
			QuotaScopes       []string
			Unset             map[string]string
		}
		Priority       int64
		SubmissionTime time.Time
		Resource       quantities
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
	u := &unitFacts{
		row: rowOfKind(group, version, ref.Kind), jobKind: d.word(ref.Kind), jobNamespace: d.word(ref.Namespace),
		jobName: ref.Name, jobUID: ref.UID, podSets: len(o.Spec.PodSets) > 0,
		quotaName: o.Spec.QuotaName, active: o.Spec.Active == nil || *o.Spec.Active,
		phase: d.word(o.Status.Phase), reason: d.word(o.Status.Reason), quota: d.word(o.Status.Quota),
		queue:    d.word(o.Status.Queue),
		attempts: o.Status.Attempts, dequeueTime: o.Status.DequeueTime, requeueAt: o.Status.RequeueState.RequeueAt,
		maxTime:  time.Duration(o.Spec.MaximumExecutionTimeSeconds) * time.Second,
		priority: o.Spec.Priority, submitted: o.Spec.SubmissionTime,
	}
	if u.phase == "" {
		u.phase = enqueued
	}
	if u.quotaName == "" {
		u.quotaName = m.Labels[labelQuotaName]
	}
	for _, c := range o.Status.Conditions {
		if c.Type == "Evicted" {
			u.evicted, u.evictedReason = c.Status == "True", c.Reason
		}
	}
	u.amounts(&o)
	return u, nil
}

func (u *unitFacts) amounts(o *unitObject) {
	var err error
	if u.total, err = o.Spec.Resource.ceil(); err != nil {
		u.bad = fmt.Sprintf("spec.resource: %v", err)
	}
	u.sum = amounts{}
	for i, set := range o.Spec.PodSets {
		requests, err := set.Requests.ceil()
		if err != nil {
			u.bad = fmt.Sprintf("spec.podSets[%d]: %v", i, err)
			continue
		}
		u.sum.addTimes(requests, set.Count)
		limits, err := set.Limits.ceil()
		if err != nil {
			u.bad = fmt.Sprintf("spec.podSets[%d]: limits: %v", i, err)
		}
		u.sets = append(u.sets, podSet{
			count: set.Count, requests: requests, limits: limits, class: classOf(set.QuotaScopes, set.PriorityClassName), unset: set.Unset,
		})
	}
}
