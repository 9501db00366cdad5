package audit

import "time"

// maxOwners limits the number of objects that an object belongs to, because owner references may form cycles.
const maxOwners = 16

// jobOf returns a unit's job, found by UID or, without a UID, by name; nil if there is none.
func (s *world) jobOf(u *unit) *job {
	if u == nil || u.now.kind == nil {
		return nil
	}
	ref := u.now.Spec.ConsumerRef
	if ref.UID != "" {
		return s.jobs[string(ref.UID)]
	}
	return s.jobNamed(u.now.kind, u.namespace, ref.Name)
}

// jobNamed returns the latest job with a name.
func (s *world) jobNamed(k *Kind, namespace, name string) *job {
	return s.jobs[s.names[objectName{k.Group, k.Resource, namespace, name}]]
}

// unitNamed returns the latest unit with a name.
func (s *world) unitNamed(namespace, name string) *unit {
	return s.units[s.names[objectName{"scheduling.x-k8s.io", "queueunits", namespace, name}]]
}

// ownerOf returns the UID of the object that the pods of a unit belong to, or "" if the unit names none.
func (s *world) ownerOf(u *unit) string {
	if j := s.jobOf(u); j != nil {
		return j.uid
	}
	return string(u.now.Spec.ConsumerRef.UID)
}

// ownerOfPod returns the UID of the object that a pod belongs to.
func (s *world) ownerOfPod(p *podFacts, namespace string) string {
	if p.kind != nil {
		if j := s.jobNamed(p.kind, namespace, p.labelled); j != nil {
			return j.uid
		}
	}
	return string(p.owner.UID)
}

// chain returns the UIDs of an object and of its controllers, nearest first. A pod without a controller belongs to
// the job that its label names.
func (s *world) chain(uid string) []string {
	var all []string
	for uid != "" && len(all) < maxOwners {
		all = append(all, uid)
		owner := s.owners[uid]
		if p := s.pods[uid]; owner == "" && p != nil && p.job != nil {
			owner = p.job.uid
		}
		uid = owner
	}
	return all
}

// root returns the topmost job among an object and its controllers.
func (s *world) root(uid string) (top *job) {
	for _, uid := range s.chain(uid) {
		if j := s.jobs[uid]; j != nil {
			top = j
		}
	}
	return top
}

// rootOf returns the topmost job that the job belongs to; nil if it belongs to none.
func (s *world) rootOf(j *job) *job {
	if j == nil || s.owners[j.uid] == "" {
		return nil
	}
	return s.root(s.owners[j.uid])
}

// withRoot returns the job, if any, and the topmost job that it belongs to.
func (s *world) withRoot(j *job) (jobs []*job) {
	if j != nil {
		jobs = append(jobs, j)
	}
	if root := s.rootOf(j); root != nil {
		jobs = append(jobs, root)
	}
	return jobs
}

// followDecider notes that a new process makes the decisions. The process never saw the units, and the objects
// between jobs and pods, that are gone by now, so it need not count their pods.
func (s *world) followDecider(w *write) {
	lease, isLease := w.body.(*leaseFacts)
	switch {
	case isLease && w.name == "kube-queue-controller" && lease.holder != "" && lease.holder != s.leader:
		s.leader = lease.holder
		s.leaders = append(s.leaders, w.Time)
	case w.resource == "queueunits" && w.user == Controller && w.instance != "" && w.instance != s.decider:
		s.decider = w.instance
	default:
		return
	}
	for _, pods := range s.present {
		for p := range pods {
			if owner, u := s.home(p); u != nil && p.live() && (!u.exists() || s.severed(p, owner)) {
				s.question(&p.object)
			}
		}
	}
}

// decidersBetween counts the processes that took the lease of the deciding program between two times. A new one does
// not know when its predecessor last wrote why a unit waits.
func (s *world) decidersBetween(from, to time.Time) (count int) {
	for _, began := range s.leaders {
		if began.After(from) && began.Before(to) {
			count++
		}
	}
	return count
}

// severed reports whether an object between a pod and its owner is gone.
func (s *world) severed(p *pod, owner string) bool {
	for _, uid := range s.chain(p.uid) {
		if uid == owner {
			return false
		}
		if j := s.jobs[uid]; j != nil && !j.exists() {
			return true
		}
		if driver := s.pods[uid]; driver != nil && !driver.exists() {
			return true
		}
	}
	return false
}
