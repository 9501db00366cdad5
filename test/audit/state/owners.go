package state

import (
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
)

// maxOwners bounds the number of objects that an object belongs to, because owner references may form
// cycles.
const maxOwners = 16

// JobOf returns a unit's job, found by UID or, without a UID, by name.
func (s *State) JobOf(u *Unit) *Job {
	f := u.Facts
	switch {
	case f.Row == nil:
		return nil
	case f.JobUID != "":
		return s.Jobs[f.JobUID]
	}
	return s.JobNamed(f.Row, u.Namespace, f.JobName)
}

// JobNamed returns the latest job with a name.
func (s *State) JobNamed(r *facts.Row, namespace, of string) *Job {
	return s.Jobs[s.names[name{r.Group, r.Resource, namespace, of}]]
}

// UnitNamed returns the latest unit with a name.
func (s *State) UnitNamed(namespace, of string) *Unit {
	return s.Units[s.names[name{"scheduling.x-k8s.io", "queueunits", namespace, of}]]
}

// ownerOf returns the UID of the object that the pods of a unit belong to, or "" if it names none.
func (s *State) ownerOf(u *Unit) string {
	if j := s.JobOf(u); j != nil {
		return j.UID
	}
	return u.Facts.JobUID
}

// root returns the topmost job among an object and its controllers.
func (s *State) root(uid string) *Job {
	var top *Job
	for _, uid := range s.chain(uid) {
		if j := s.Jobs[uid]; j != nil {
			top = j
		}
	}
	return top
}

// RootOf returns the topmost job that the job belongs to; nil if it belongs to none.
func (s *State) RootOf(j *Job) *Job {
	if j == nil || s.owners[j.UID] == "" {
		return nil
	}
	return s.root(s.owners[j.UID])
}

// chain returns the UIDs of an object and of its controllers, the nearest first. A pod without a
// controller belongs to the job that its label names.
func (s *State) chain(uid string) []string {
	var all []string
	for uid != "" && len(all) < maxOwners {
		all = append(all, uid)
		owner := s.owners[uid]
		if p := s.Pods[uid]; owner == "" && p != nil && p.Job != nil {
			owner = p.Job.UID
		}
		uid = owner
	}
	return all
}

// deciderLease is the lease of the program that decides.
const deciderLease = "kube-queue-controller"

// followDecider notices that another process decides from now on. It never saw units and objects
// between jobs and pods that are gone, so it need not count their pods.
func (s *State) followDecider(write *facts.Write) {
	lease, isLease := write.Body.(*facts.Lease)
	switch {
	case isLease && write.Name == deciderLease && lease.Holder != "" && lease.Holder != s.leader:
		s.leader = lease.Holder
		s.leaders = append(s.leaders, write.Time)
	case write.Resource == "queueunits" && write.User == facts.Controller && write.Instance != "" && write.Instance != s.decider:
		s.decider = write.Instance
	default:
		return
	}
	for _, pods := range s.present {
		for p := range pods {
			if owner, u := s.home(p); u != nil && p.Live() && (!u.Exists() || s.severed(p, owner)) {
				s.question(&p.unclear)
			}
		}
	}
}

// DecidersBetween counts the processes that took the lease of the program that decides between two times. A new one
// does not know when the one before it last wrote why a unit waits.
func (s *State) DecidersBetween(from, to time.Time) (count int) {
	for _, began := range s.leaders {
		if began.After(from) && began.Before(to) {
			count++
		}
	}
	return count
}

// severed reports whether an object between a pod and its owner is gone.
func (s *State) severed(p *Pod, owner string) bool {
	for _, uid := range s.chain(p.UID) {
		if uid == owner {
			return false
		}
		if j := s.Jobs[uid]; j != nil && !j.Gone.IsZero() {
			return true
		}
		if driver := s.Pods[uid]; driver != nil && !driver.Gone.IsZero() {
			return true
		}
	}
	return false
}

// OwnerOf returns the UID of the object that a pod belongs to, from the pod in a request.
func (s *State) OwnerOf(p *facts.Pod, namespace string) string {
	if p.ByRow != nil {
		if j := s.JobNamed(p.ByRow, namespace, p.Labelled); j != nil {
			return j.UID
		}
	}
	return p.Owner.UID
}

// HolderOf returns the unit that holds quota for the nearest of an object and its controllers, or nil.
func (s *State) HolderOf(uid string) *Unit {
	for _, uid := range s.chain(uid) {
		for _, u := range s.admitted[uid] {
			if s.Holds(u) {
				return u
			}
		}
	}
	return nil
}
